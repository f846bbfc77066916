// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package languages

import (
	"path"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Image is the image of the catalogue that has all the programs.
const Image = "daytona"

// program is a language server as images have it.
type program struct {
	argv    []string
	options any // of its own kind
}

// of returns the program for a language; ok is false where there is none.
func of(language string) (p program, ok bool) {
	switch language {
	case "python":
		return program{argv: []string{"pyright-langserver", "--stdio"}}, true
	case "typescript", "javascript":
		return program{[]string{"typescript-language-server", "--stdio"}, map[string]any{
			"disableAutomaticTypingAcquisition": true,                                       // it fetches nothing by itself
			"tsserver":                          map[string]any{"useSyntaxServer": "never"}, // which answers without knowing the project
		}}, true
	}
	return program{}, false
}

// unknown is the error about a language.
func unknown(language string) error {
	return fault.InvalidField("language", "%q is not one that there are servers for: use python, typescript or javascript", sandbox.Clip(language, 40))
}

// missing is the error of a sandbox without the program.
func (p program) missing(said string) error {
	e := fault.New(fault.Unsupported, "the sandbox's image has no language server %s", p.argv[0])
	if said != "" {
		e.Message += " (" + said + ")"
	}
	return e.WithRemedy("make the sandbox of the image %s, which an administrator builds by: sandpit image build %s", Image, Image)
}

// dialect is the protocol's name of what a file is written in.
func dialect(language, file string) string {
	switch strings.ToLower(path.Ext(file)) {
	case ".py", ".pyi":
		return "python"
	case ".ts", ".mts", ".cts":
		return "typescript"
	case ".tsx":
		return "typescriptreact"
	case ".js", ".mjs", ".cjs":
		return "javascript"
	case ".jsx":
		return "javascriptreact"
	}
	return language
}
