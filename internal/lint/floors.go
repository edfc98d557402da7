package lint

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Floors are the folders of a repository in the order of their imports, the lowest first. A package
// belongs to the longest folder that contains it. It imports packages of its own folder and of lower
// floors. Two folders on one floor do not import each other.
type Floors [][]string

// CheckFloors returns the imports that point upwards or to another folder of the same floor, the
// packages that no folder contains, and the folders without a package. Tests do not count: a test
// may use what is built on the code that it tests. Root is the path of the repository's module.
func CheckFloors(f *Files, root string, floors Floors) []Finding {
	floorOf := map[string]int{}
	for i, folders := range floors {
		for _, folder := range folders {
			floorOf[folder] = i
		}
	}
	var found []Finding
	unused := maps.Clone(floorOf)
	for _, file := range f.parsed {
		own, ok := folderOf(file.name, floorOf)
		if !ok {
			found = append(found, Finding{What: "no floor has the folder of " + file.name})
			continue
		}
		delete(unused, own)
		if strings.HasSuffix(file.name, "_test.go") {
			continue
		}
		for _, spec := range file.syntax.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			below, inModule := strings.CutPrefix(path, root+"/")
			if err != nil || !inModule {
				continue
			}
			if other, ok := folderOf(below+"/", floorOf); ok && other != own && floorOf[other] >= floorOf[own] {
				found = append(found, f.at(spec, "%s imports %s, which is not on a lower floor", own, other))
			}
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(unused)) {
		found = append(found, Finding{What: fmt.Sprintf("the folder %s of a floor has no Go file", folder)})
	}
	return sortFindings(found)
}

// folderOf returns the longest folder of a floor that contains a path.
func folderOf(path string, floorOf map[string]int) (folder string, ok bool) {
	for name := range floorOf {
		if within(path, name) && len(name) > len(folder) {
			folder = name
		}
	}
	return folder, folder != ""
}
