package wire

// IDs are ids as they travel; nil stays nil.
func IDs[ID ~string](ids []ID) []string {
	if ids == nil {
		return nil
	}
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = string(id)
	}
	return list
}
