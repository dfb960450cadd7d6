package walls

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	sys     = "golang.org/x/sys"
	purego  = "github.com/ebitengine/purego"
	testify = "github.com/stretchr/testify"
)

type room struct {
	folder string
	may    []string // packages of ours, and modules of others
	pure   bool     // no system calls, and no branch on the operating system
}

// rooms says what the code of each folder may import beyond the standard library. The longest prefix counts, and a folder
// that is under none of them has no place in the house.
var rooms = []room{
	{folder: "bench", may: []string{sys}},
	{folder: "cancel", pure: true},
	{folder: "cancel/purehost", may: []string{"weft/cancel", sys, purego}},
	{folder: "cancel/canceltest", may: []string{"weft/cancel", testify}},
	{folder: "core", may: []string{"weft/cancel"}, pure: true},
	{folder: "core/pollertest", may: []string{"weft/core", testify}},
	{folder: "core/servetest", may: []string{"weft/core", "weft/core/pollertest", "weft/core/purelane", testify}},
	{folder: "core/purelane", may: []string{"weft/core", "weft/cancel", sys, purego}},
	{folder: "epoll", may: []string{"weft/core", "weft/cancel", sys}},
	{folder: "iocp", may: []string{"weft/core", "weft/cancel", sys}},
	{folder: "capi", may: []string{"weft/core", "weft/cancel", "weft/epoll", "weft/iocp", sys, "C"}},
	{folder: "capi/libweft", may: []string{"weft/capi", "C"}},
	{folder: "tests/walls"},
}

// inTests is what test files may import beyond what their room may. Never C: the packages are tested without cgo.
var inTests = []string{"weft", sys, purego, testify}

// roomOf finds the room of a file.
func roomOf(name string) (home room, ok bool) {
	for _, r := range rooms {
		if under(path.Dir(name), r.folder) && len(r.folder) > len(home.folder) {
			home, ok = r, true
		}
	}
	return home, ok
}

func under(name, folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }

// TestImports: arrows point one way, cancel <- core <- pollers <- capi, and only capi speaks to C.
func TestImports(t *testing.T) {
	for _, name := range tree(t, withSuffix(".go")) {
		file, err := parser.ParseFile(token.NewFileSet(), name, read(t, name), parser.ImportsOnly)
		if err != nil {
			t.Error(err)
			continue
		}
		home, ok := roomOf(name)
		if !ok {
			t.Errorf("%s: its folder is in no room", name)
			continue
		}
		may := home.may
		if strings.HasSuffix(name, "_test.go") {
			may = append(slices.Clone(may), inTests...)
		}
		for _, spec := range file.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			// The first element of a path outside the standard library has a dot, or is our own module.
			standard := !strings.Contains(strings.Split(imported, "/")[0], ".") && !under(imported, "weft") && imported != "C"
			if standard && !(home.pure && imported == "syscall") {
				continue
			}
			if !slices.ContainsFunc(may, func(allowed string) bool {
				whole := allowed == "weft" || strings.Contains(allowed, ".") // with all that is under it
				return imported == allowed || whole && under(imported, allowed)
			}) {
				t.Errorf("%s: %s may not import %s", name, home.folder, imported)
			}
		}
	}
}

var (
	systems      = []string{"linux", "windows", "darwin", "freebsd", "unix", "amd64", "arm64"}
	systemSuffix = regexp.MustCompile(`_(` + strings.Join(systems, "|") + `)(_test)?\.go$`)
)

// TestPure: core and cancel are the same on every system; what differs is handed to them.
func TestPure(t *testing.T) {
	for _, name := range tree(t, withSuffix(".go")) {
		if home, ok := roomOf(name); !ok || !home.pure {
			continue
		}
		if systemSuffix.MatchString(name) {
			t.Errorf("%s: a file for one system", name)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, read(t, name), parser.ParseComments)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, group := range file.Comments {
			for _, comment := range group.List {
				if !constraint.IsGoBuild(comment.Text) {
					continue
				}
				expression, err := constraint.Parse(comment.Text)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				expression.Eval(func(tag string) bool {
					if slices.Contains(systems, tag) || tag == "cgo" {
						t.Errorf("%s: a build constraint on %s", name, tag)
					}
					return true
				})
			}
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if selector, ok := node.(*ast.SelectorExpr); ok {
				if x, ok := selector.X.(*ast.Ident); ok && x.Name == "runtime" && (selector.Sel.Name == "GOOS" || selector.Sel.Name == "GOARCH") {
					t.Errorf("%s: a branch on runtime.%s", name, selector.Sel.Name)
				}
			}
			return true
		})
	}
}

// TestModules: the module stands on three others, no more.
func TestModules(t *testing.T) {
	required := regexp.MustCompile(`(?m)^\s*(?:require )?([a-z.]+\.[a-z]+/\S+) v\S+( // indirect)?$`)
	found := map[string]bool{}
	for _, match := range required.FindAllStringSubmatch(read(t, "go.mod"), -1) {
		if match[2] == "" {
			found[match[1]] = true
		}
	}
	for _, module := range []string{sys, purego, testify} {
		if !found[module] {
			t.Errorf("go.mod does not require %s directly", module)
		}
		delete(found, module)
	}
	for module := range found {
		t.Errorf("go.mod requires %s", module)
	}
}
