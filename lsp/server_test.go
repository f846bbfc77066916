// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package lsp_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sandpit.dev/internal/packagestest"
	"sandpit.dev/lsp"
)

// bound is how long a language server may take for anything here: far more than it does.
const bound = 2 * time.Minute

// process is the stream of a program's standard input and output.
type process struct {
	io.ReadCloser
	io.WriteCloser
}

func (p process) Close() error {
	_ = p.ReadCloser.Close()
	return p.WriteCloser.Close()
}

// real starts a language server of the image daytona's packages on this machine, for the files of a project.
func real(t *testing.T, program string, files map[string]string) (*lsp.Client, string) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short leaves out what npm may have to fetch")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("the language servers need Node, which is not installed")
	}
	modules := packagestest.NeedModules(t, "language-servers", "../image/entry/entries/daytona")
	project := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(project, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(node, filepath.Join(modules, ".bin", program), "--stdio")
	cmd.Dir = project
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	c := lsp.New(process{out, in})
	ended := make(chan error, 1)
	go func() { ended <- c.Run(context.Background()) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		defer cancel()
		if err := c.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		late := time.AfterFunc(bound, func() { _ = cmd.Process.Kill() })
		<-ended // its output is at its end
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
		if !late.Stop() {
			t.Error("the server did not end by itself")
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	if err := c.Initialize(ctx, project, nil); err != nil {
		t.Fatal(err)
	}
	return c, project
}

func TestServersTellSymbolsAndCompletions(t *testing.T) {
	for _, s := range []struct{ program, language, file, text, changed string }{
		{
			"pyright-langserver", "python", "basket.py",
			"class Basket:\n    def add(self, n: int) -> int:\n        return n\n\n\nbasket = Basket()\nbasket.\n",
			"class Basket:\n    def take(self, n: int) -> int:\n        return n\n\n\nbasket = Basket()\nbasket.\n",
		},
		{
			"typescript-language-server", "typescript", "basket.ts",
			"export class Basket {\n  add(n: number): number {\n    return n\n  }\n}\nconst basket = new Basket()\nbasket.\n",
			"export class Basket {\n  take(n: number): number {\n    return n\n  }\n}\nconst basket = new Basket()\nbasket.\n",
		},
	} {
		t.Run(s.program, func(t *testing.T) {
			t.Parallel()
			c, project := real(t, s.program, map[string]string{s.file: s.text, "tsconfig.json": "{}"})
			ctx, cancel := context.WithTimeout(t.Context(), bound)
			defer cancel()
			uri := lsp.FileURI(filepath.Join(project, s.file))
			doc := lsp.Document{URI: uri, Language: s.language, Version: 1, Text: s.text}
			if err := c.Open(ctx, doc); err != nil {
				t.Fatal(err)
			}
			has := func(member string, want bool) {
				t.Helper()
				all, err := c.DocumentSymbols(ctx, uri)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.ContainsFunc(all, func(s lsp.Symbol) bool { return s.Name == "Basket" && s.Kind == 5 && s.Location.URI == uri }) {
					t.Errorf("the symbols are %+v", all)
				}
				if got := slices.ContainsFunc(all, func(s lsp.Symbol) bool { return s.Name == member && s.Location.Range.Start.Line == 1 }); got != want {
					t.Errorf("%s is a symbol: %t, want %t; they are %+v", member, got, want, all)
				}
				list, err := c.Complete(ctx, uri, lsp.Position{Line: 6, Character: 7})
				if err != nil {
					t.Fatal(err)
				}
				if got := slices.ContainsFunc(list.Items, func(i lsp.Completion) bool { return i.Label == member }); got != want {
					t.Errorf("%s is proposed: %t, want %t; there are %+v", member, got, want, list.Items)
				}
			}
			has("add", true)
			if err := c.Ping(ctx); err != nil {
				t.Error(err)
			}
			doc.Version, doc.Text = 2, s.changed
			if err := c.Change(ctx, doc); err != nil {
				t.Fatal(err)
			}
			has("add", false)
			has("take", true)
			all, err := c.Symbols(ctx, "Basket")
			if err != nil || !slices.ContainsFunc(all, func(s lsp.Symbol) bool { return s.Name == "Basket" && s.Location.URI == uri }) {
				t.Errorf("the symbols of the project are %+v, %v", all, err)
			}
			if err := c.CloseDocument(ctx, uri); err != nil {
				t.Error(err)
			}
		})
	}
}
