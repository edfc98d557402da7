package inner

import _ "example.org/repository/rest" // want "imports example.org/repository/rest, which is of another module"
