package walls

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// tree lists the project's files, slash-separated and relative to its root; what is built and what git keeps is left out.
func tree(t *testing.T, keep func(name string) bool) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch {
		case entry.IsDir() && slices.Contains([]string{".git", "build", "out"}, name):
			return fs.SkipDir
		case name == ".git": // a file in a second worktree
		case entry.Type().IsRegular() && keep(name):
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Fatal("no files: the test would see nothing")
	}
	return names
}

// withSuffix keeps the names that end in one of the suffixes.
func withSuffix(suffixes ...string) func(string) bool {
	return func(name string) bool {
		return slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func exists(name string) bool {
	_, err := os.Stat(filepath.Join(root, filepath.FromSlash(name)))
	return err == nil
}

// code tells whether a file is source text of this project, in any language.
func code(name string) bool {
	if strings.Contains(name, "/testdata/") {
		return false
	}
	switch path.Ext(name) {
	case ".go", ".c", ".h", ".hpp", ".cpp", ".cmake", ".in", ".sh", ".pml", ".map", ".def":
		return true
	case "":
		return !strings.HasPrefix(path.Base(name), ".") && path.Base(name) != "LICENSE"
	}
	return path.Base(name) == "CMakeLists.txt"
}

var (
	cComment  = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	cLiteral  = regexp.MustCompile(`"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'`)
	wordStart = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
)

// identifiers collects the names in the code of a C, C++ or Go file, comments and literals aside.
func identifiers(text string, into map[string]bool) {
	text = cComment.ReplaceAllString(text, " ")
	text = cLiteral.ReplaceAllString(text, " ")
	for _, word := range wordStart.FindAllString(text, -1) {
		into[word] = true
	}
}
