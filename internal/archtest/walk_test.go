// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// funcName is a function in the text of a walk: `dir.Func` or `dir.Type.Method`, in code quotes.
var funcName = regexp.MustCompile("`([a-z0-9/]+)\\.((?:\\w+\\.)?\\w+)`")

// Each function that a walk of ARCHITECTURE.md names is there, and none is passed twice.
func TestTheWalksNameWhatIsThere(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## Six walks\n")
	if !ok {
		t.Fatal("ARCHITECTURE.md has no section «Six walks»")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	walks := strings.Split(section, "\n**")[1:]
	if len(walks) != 6 {
		t.Fatalf("there are %d walks, want 6", len(walks))
	}
	declared := map[string]map[string]bool{} // by directory
	for _, walk := range walks {
		title, _, _ := strings.Cut(walk, ".**")
		passed := map[string]bool{}
		for _, m := range funcName.FindAllStringSubmatch(walk, -1) {
			dir, name := m[1], m[2]
			if strings.HasSuffix(name, ".go") || name == "go" {
				continue
			}
			if declared[dir] == nil {
				declared[dir] = functions(t, dir)
			}
			if !declared[dir][name] {
				t.Errorf("%s: there is no function %s in %s", title, name, dir)
			}
			if passed[m[0]] {
				t.Errorf("%s: %s is passed twice", title, m[0])
			}
			passed[m[0]] = true
		}
		if len(passed) < 5 {
			t.Errorf("%s: names %d functions, want at least 5", title, len(passed))
		}
	}
}

// functions returns the functions, and methods as Type.Method, of the package in a directory.
func functions(t *testing.T, dir string) map[string]bool {
	t.Helper()
	entries, err := fs.ReadDir(os.DirFS("../.."), dir)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path.Join("../..", dir, e.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				names[receiver(f)+f.Name.Name] = true
			}
		}
	}
	return names
}

// receiver returns the name of a method's type with a dot, or "".
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	x := f.Recv.List[0].Type
	if star, ok := x.(*ast.StarExpr); ok {
		x = star.X
	}
	if generic, ok := x.(*ast.IndexExpr); ok {
		x = generic.X
	}
	if id, ok := x.(*ast.Ident); ok {
		return id.Name + "."
	}
	return ""
}
