package nodoc // want "the package has no package comment: write doc.go"
