// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package languages_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
)

// asServer has the test's program be a language server, by its value: what that does besides.
const asServer = "SANDPIT_TEST_LANGUAGE_SERVER"

func TestMain(m *testing.M) {
	if how, ok := os.LookupEnv(asServer); ok {
		os.Exit(serve(how))
	}
	os.Exit(m.Run())
}

type asked struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Query    string `json:"query"`
		Document struct {
			URI     string `json:"uri"`
			Text    string `json:"text"`
			Version int    `json:"version"`
		} `json:"textDocument"`
		Changes []struct {
			Text string `json:"text"`
		} `json:"contentChanges"`
	} `json:"params"`
}

// serve is a language server whose symbols tell what it knows: of a file its text, with the version as the kind; of the project
// what is asked for.
func serve(how string) int {
	switch how {
	case "nonsense":
		fmt.Println("nonsense")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	case "refuses":
		fmt.Fprintln(os.Stderr, "no license\nat all")
		return 3
	}
	type text struct {
		version int
		text    string
	}
	files := make(map[string]text)
	symbol := func(uri, name string, kind int) []any {
		return []any{map[string]any{"name": name, "kind": kind, "location": map[string]any{"uri": uri}}}
	}
	in := bufio.NewReader(os.Stdin)
	for {
		m, err := next(in)
		if err != nil {
			return 0
		}
		d := m.Params.Document
		var result any
		switch m.Method {
		case "textDocument/didOpen":
			files[d.URI] = text{d.Version, d.Text}
		case "textDocument/didChange":
			files[d.URI] = text{d.Version, m.Params.Changes[0].Text}
		case "textDocument/didClose":
			delete(files, d.URI)
		case "textDocument/documentSymbol":
			f := files[d.URI]
			result = symbol(d.URI, f.text, f.version)
		case "textDocument/completion":
			result = []any{map[string]any{"label": files[d.URI].text}}
		case "workspace/symbol":
			switch m.Params.Query {
			case "silence":
				continue
			case "an end":
				return 4
			case "the process":
				result = symbol("", strconv.Itoa(os.Getpid()), 1)
			case "the files":
				result = symbol("", fmt.Sprint(len(files)), 1)
			}
		case "exit":
			if how != "stubborn" {
				return 0
			}
		}
		if m.ID != nil {
			b, err := json.Marshal(map[string]any{"id": m.ID, "result": result})
			if err != nil {
				return 1
			}
			fmt.Printf("Content-Length: %d\r\n\r\n%s", len(b), b)
		}
	}
}

func next(r *bufio.Reader) (m asked, err error) {
	length := 0
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return m, err
		}
		if line = strings.TrimSpace(line); line == "" {
			break
		}
		if n, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			if length, err = strconv.Atoi(n); err != nil {
				return m, err
			}
		}
	}
	b := make([]byte, length)
	if _, err := io.ReadFull(r, b); err != nil {
		return m, err
	}
	return m, json.Unmarshal(b, &m)
}
