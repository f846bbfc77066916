// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Command console bundles the console's scripts and styles: what is in console/ui becomes console/dist, the same bytes each time.
// It runs no code of the packages that it bundles, and needs no Node. The packages have to be there, as their lockfile says.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	ui := flag.String("ui", "console/ui", "the directory of the sources")
	out := flag.String("out", "console/dist", "the directory to write; what is in it goes")
	flag.Parse()
	if err := run(*ui, *out); err != nil {
		fmt.Fprintln(os.Stderr, "console:", err)
		os.Exit(1)
	}
}

// entry is a file that the page names or imports by itself. Those of vendor have code of others alone, so that they change with
// an upgrade and not with ours.
func entries() []api.EntryPoint {
	var all []api.EntryPoint
	for _, name := range []string{"main", "more", "vendor/core", "vendor/editor", "vendor/javascript", "vendor/json", "vendor/markdown", "vendor/plots", "vendor/python", "vendor/terminal"} {
		all = append(all, api.EntryPoint{InputPath: "src/" + name + ".ts", OutputPath: strings.ReplaceAll(name, "/", "-")})
	}
	return append(all, api.EntryPoint{InputPath: "src/style.css", OutputPath: "style"}, api.EntryPoint{InputPath: "src/terminal.css", OutputPath: "terminal"})
}

func run(ui, out string) error {
	dir, err := filepath.Abs(ui)
	if err != nil {
		return err
	}
	result := api.Build(api.BuildOptions{
		AbsWorkingDir: dir, EntryPointsAdvanced: entries(), Outdir: "dist", EntryNames: "[name]-[hash]", ChunkNames: "chunk-[hash]",
		Bundle: true, Splitting: true, Format: api.FormatESModule, Platform: api.PlatformBrowser, Target: api.ES2022,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, LegalComments: api.LegalCommentsNone, Charset: api.CharsetUTF8,
		JSX: api.JSXAutomatic, JSXImportSource: "preact", Tsconfig: "tsconfig.json", Metafile: true, Write: false,
	})
	if len(result.Errors) > 0 {
		return errors.New(strings.Join(api.FormatMessages(result.Errors, api.FormatMessagesOptions{}), ""))
	}
	files := make(map[string][]byte)
	for _, f := range result.OutputFiles {
		files[filepath.Base(f.Path)] = f.Contents
	}
	chunks, err := chunksOf("dist/main-", result.Metafile)
	if err != nil {
		return err
	}
	page, err := page(dir, chunks, files)
	if err != nil {
		return err
	}
	licences, err := licences(dir, result.Metafile)
	if err != nil {
		return err
	}
	files["licences.txt"] = licences
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for name, content := range files {
		packed, err := pack(content)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, name+".gz"), packed, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(out, "index.html"), page, 0o644)
}

// chunksOf returns the chunks that an output imports as it loads. One of them has the code of others that it needs at once, and
// no code of ours, so that it changes with an upgrade alone.
func chunksOf(prefix, metafile string) ([]string, error) {
	var meta struct {
		Outputs map[string]struct {
			Imports []struct{ Path, Kind string }
			Inputs  map[string]struct{}
		}
	}
	if err := json.Unmarshal([]byte(metafile), &meta); err != nil {
		return nil, err
	}
	chunks := make(map[string]bool)
	var follow func(name string)
	follow = func(name string) {
		for _, i := range meta.Outputs[name].Imports {
			if i.Kind == "import-statement" && !chunks[i.Path] {
				chunks[i.Path] = true
				follow(i.Path)
			}
		}
	}
	for name := range meta.Outputs {
		if strings.HasPrefix(name, prefix) {
			follow(name)
		}
	}
	var names []string
	for chunk := range chunks {
		ours, others := "", ""
		for input := range meta.Outputs[chunk].Inputs {
			if strings.HasPrefix(input, "node_modules/") || strings.HasPrefix(input, "src/vendor/") {
				others = input
			} else {
				ours = input
			}
		}
		if ours != "" && others != "" {
			return nil, fmt.Errorf("the chunk %s has code of others, %s, and of ours, %s", chunk, others, ours)
		}
		names = append(names, filepath.Base(chunk))
	}
	slices.Sort(names)
	return names, nil
}

// page returns the page with the names of what it loads.
func page(dir string, chunks []string, files map[string][]byte) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(dir, "src", "index.html"))
	if err != nil {
		return nil, err
	}
	var preloads strings.Builder
	for _, c := range chunks {
		fmt.Fprintf(&preloads, "<link rel=\"modulepreload\" href=\"/console/assets/%s\">\n", c)
	}
	text = bytes.ReplaceAll(text, []byte("{{preloads}}\n"), []byte(preloads.String()))
	for _, part := range []string{"main.js", "style.css", "terminal.css"} {
		name, kind, _ := strings.Cut(part, ".")
		of := "{{" + name + "}}"
		for n := range files {
			if strings.HasPrefix(n, name+"-") && strings.HasSuffix(n, kind) {
				text = bytes.ReplaceAll(text, []byte(of), []byte(n))
			}
		}
		if bytes.Contains(text, []byte(of)) {
			return nil, fmt.Errorf("there is no %s for the page", part)
		}
	}
	return text, nil
}

// pack compresses without a time or a name, so that the bytes are the same each time.
func pack(content []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// licences returns those of the packages whose code is bundled.
func licences(dir, metafile string) ([]byte, error) {
	var meta struct {
		Outputs map[string]struct {
			Inputs map[string]struct{ BytesInOutput int }
		}
	}
	if err := json.Unmarshal([]byte(metafile), &meta); err != nil {
		return nil, err
	}
	var packages []string
	for _, o := range meta.Outputs {
		for input, of := range o.Inputs {
			if rest, ok := strings.CutPrefix(input, "node_modules/"); ok && of.BytesInOutput > 0 {
				packages = append(packages, packageOf(rest))
			}
		}
	}
	slices.Sort(packages)
	var b bytes.Buffer
	for _, p := range slices.Compact(packages) {
		text, err := os.ReadFile(filepath.Join(dir, "node_modules", p, "LICENSE"))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s\n%s\n\n%s\n\n", p, strings.Repeat("=", len(p)), bytes.TrimSpace(text))
	}
	return b.Bytes(), nil
}

// packageOf is the name of the package that a file is of, by its path below node_modules.
func packageOf(path string) string {
	parts := strings.SplitN(path, "/", 3)
	if strings.HasPrefix(path, "@") {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}
