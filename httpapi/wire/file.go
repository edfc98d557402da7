package wire

// FileInfo is a file or a folder of an allocation.
type FileInfo struct {
	// Name is the last element of the path.
	Name  string
	IsDir bool
	// Size is in bytes.
	Size int64
	// FileMode is in the form of ls, as in "-rw-r--r--".
	FileMode    string
	ModTime     Time
	ContentType string `json:",omitempty"`
}

// StreamFrame is a part of a file that is streamed. A frame without any field only shows that the
// connection lives.
type StreamFrame struct {
	// Offset is where Data ends in File.
	Offset int64  `json:",omitempty"`
	Data   []byte `json:",omitempty"`
	// File is the path of the file in the allocation's folder. It may be empty if it is that of the frame
	// before.
	File string `json:",omitempty"`
	// FileEvent is "file deleted" or "file truncated", or empty.
	FileEvent string `json:",omitempty"`
}
