//race:skip one goroutine
package proto_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
)

// The generators of the committed code. Their versions are in that code.
const (
	messages = "protoc-gen-go v1.36.12"
	services = "protoc-gen-go-grpc 1.6.2"
)

// The committed code is what the generators make of the .proto files.
func TestGenerated(t *testing.T) {
	t.Parallel()
	for _, expected := range []string{messages, services} {
		name, _, _ := strings.Cut(expected, " ")
		got, err := exec.Command(name, "--version").Output()
		if err != nil {
			t.Skipf("!!! NOT RUN: the generator %s is not there: %v", name, err)
		}
		if version := strings.TrimSpace(string(got)); version != expected {
			t.Skipf("!!! NOT RUN: the generator is %s, not %s", version, expected)
		}
	}
	if _, err := exec.LookPath("buf"); err != nil {
		t.Skipf("!!! NOT RUN: the compiler is not there: %v", err)
	}
	fresh := t.TempDir()
	generate := exec.Command("buf", "generate", "--template", "plugin/proto/buf.gen.yaml", "--path", "plugin/proto", "-o", fresh)
	generate.Dir = filepath.Join("..", "..")
	output, err := generate.CombinedOutput()
	must.NoError(t, err, must.Sprint(string(output)))
	must.Eq(t, generated(t, "."), generated(t, filepath.Join(fresh, "plugin", "proto")))
}

// generated returns the texts of the generated files below a folder.
func generated(t *testing.T, folder string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	must.NoError(t, filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".pb.go") {
			return err
		}
		text, err := os.ReadFile(name)
		relative, _ := filepath.Rel(folder, name)
		// A checkout may have other line ends.
		texts[relative] = string(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")))
		return err
	}))
	must.MapLen(t, 8, texts)
	return texts
}
