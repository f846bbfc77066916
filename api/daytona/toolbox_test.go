// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/sandbox"
)

// refused asks for what cannot be, and returns what clients read of it.
func (h *house) refused(token, method, path, body string, headers ...string) problem {
	h.t.Helper()
	status, text := h.ask(token, method, path, body, headers...)
	var p problem
	if err := json.Unmarshal([]byte(text), &p); err != nil || p.StatusCode != status {
		h.t.Fatalf("%s %s: %d %s (%v)", method, path, status, text, err)
	}
	return p
}

// Clients raise another error for a file that is missing than for a sandbox that is.
func TestAMissingSandboxIsNoMissingFile(t *testing.T) {
	h := open(t)
	h.create(`{"name":"box","networkBlockAll":true}`)
	form := "--b\r\nContent-Disposition: form-data; name=\"files[0].path\"\r\n\r\nx\r\n--b\r\nContent-Disposition: form-data; name=\"files[0].file\"; filename=\"x\"\r\n\r\nx\r\n--b--\r\n"
	process := sandbox.NewProcessID()
	multi := []string{"Content-Type", "multipart/form-data; boundary=b"}
	for _, c := range []struct {
		method, path, body string
		headers            []string
		code               string // of a file or process that is missing in a sandbox that is there; "": it would not be
	}{
		{"GET", "/files?path=none", "", nil, wire.CodeFileNotFound},
		{"GET", "/files/info?path=none", "", nil, wire.CodeFileNotFound},
		{"POST", "/files/folder?path=x", "", nil, ""},
		{"DELETE", "/files?path=none", "", nil, wire.CodeFileNotFound},
		{"POST", "/files/move?source=none&destination=b", "", nil, wire.CodeFileNotFound},
		{"GET", "/files/find?path=none&pattern=x", "", nil, wire.CodeFileNotFound},
		{"GET", "/files/search?path=none&pattern=x", "", nil, wire.CodeFileNotFound},
		{"POST", "/files/replace", `{"files":["x"],"pattern":"a","newValue":"b"}`, nil, ""},
		{"POST", "/files/permissions?path=none&mode=644", "", nil, wire.CodeFileNotFound},
		{"POST", "/files/bulk-upload", form, multi, ""},
		{"POST", "/files/upload-v2?path=x", strings.ReplaceAll(form, "files[0].path", "file"), multi, ""},
		{"POST", "/files/bulk-download", `{"paths":["none"]}`, nil, ""},
		{"GET", "/files/download?path=none", "", nil, wire.CodeFileNotFound},
		{"GET", "/process/session/s/command/" + process, "", nil, wire.CodeProcessNotFound},
		{"GET", "/process/session/s/command/" + process + "/logs", "", nil, wire.CodeProcessNotFound},
		{"POST", "/process/session/s/command/" + process + "/input", `{"data":"x"}`, nil, wire.CodeProcessNotFound},
		{"GET", "/process/pty/none", "", nil, wire.CodeProcessNotFound},
		{"GET", "/git/status?path=.", "", nil, ""},
		{"POST", "/lsp/start", `{"languageId":"python","pathToProject":"."}`, nil, ""},
		{"POST", "/lsp/did-open", `{"languageId":"python","pathToProject":".","uri":"file://none"}`, nil, ""},
	} {
		what := c.method + " " + c.path
		for _, ref := range []string{"none", "abcdefghijklmnop"} {
			if p := h.refused("writer", c.method, "/toolbox/"+ref+c.path, c.body, c.headers...); p.StatusCode != http.StatusNotFound || p.Code != "NOT_FOUND" ||
				!strings.Contains(p.Message, `there is no sandbox "`+ref) {
				t.Errorf("%s in no sandbox: %+v", what, p)
			}
		}
		if p := h.refused("other", c.method, "/toolbox/box"+c.path, c.body, c.headers...); p.StatusCode != http.StatusNotFound || p.Code != "NOT_FOUND" {
			t.Errorf("%s in another project's: %+v", what, p)
		}
		if c.code != "" {
			if p := h.refused("writer", c.method, "/toolbox/box"+c.path, c.body, c.headers...); p.StatusCode != http.StatusNotFound || p.Code != c.code {
				t.Errorf("%s: %+v, not %s", what, p, c.code)
			}
		}
	}
}

// Likewise for a token that may not, and a file that the sandbox's user may not.
func TestATokensRightsAreNotAFiles(t *testing.T) {
	h := open(t)
	h.create(`{"name":"box","networkBlockAll":true}`)
	for _, path := range []string{"/files/folder?path=x", "/files/permissions?path=x&mode=644", "/files/move?source=a&destination=b"} {
		if p := h.refused("reader", "POST", "/toolbox/box"+path, ""); p.StatusCode != http.StatusForbidden || p.Code != "DENIED" {
			t.Errorf("%s by who only reads: %+v", path, p)
		}
	}
}

func TestLanguageServersAreAskedForWhatTheyHave(t *testing.T) {
	h := open(t)
	h.create(`{"name":"box","networkBlockAll":true}`)
	for _, c := range []struct {
		method, path, body string
		status             int
		code, says         string
	}{
		{"POST", "/lsp/did-open", `{"languageId":"python","pathToProject":"."}`, 400, "INVALID", "uri:"},
		{"POST", "/lsp/did-close", `{"languageId":"python","pathToProject":".","uri":"https://x"}`, 400, "INVALID", "is not file:// and a path"},
		{"POST", "/lsp/completions", `{"languageId":"python","pathToProject":".","uri":"file://a"}`, 400, "INVALID", "position:"},
		{"POST", "/lsp/completions", `{"languageId":"python","pathToProject":".","uri":"file://a","position":{"line":-1,"character":0}}`, 400, "", "line"},
		{"POST", "/lsp/completions", `{"languageId":"python","pathToProject":".","uri":"file://a","position":{"line":1,"character":0}}`, 400, wire.CodeLSPNotInitialized, "start it first"},
		{"POST", "/lsp/start", `{"languageId":"cobol","pathToProject":"."}`, 400, "INVALID", "languageId:"},
		{"POST", "/lsp/start", `{"languageId":"python"}`, 400, "INVALID", "pathToProject:"},
		{"POST", "/lsp/start", `{"languageId":"python","pathToProject":"none"}`, 400, "INVALID", "pathToProject:"},
		{"GET", "/lsp/document-symbols?languageId=python&pathToProject=.", "", 400, "INVALID", "uri:"},
		{"GET", "/lsp/document-symbols?languageId=python&pathToProject=.&uri=file://a", "", 400, wire.CodeLSPNotInitialized, "start it first"},
		{"GET", "/lsp/workspacesymbols?query=x", "", 400, "INVALID", "languageId:"},
		{"GET", "/lsp/workspacesymbols?languageId=python&pathToProject=.&query=" + strings.Repeat("x", 2000), "", 400, "INVALID", "query:"},
	} {
		if p := h.refused("writer", c.method, "/toolbox/box"+c.path, c.body); p.StatusCode != c.status || c.code != "" && p.Code != c.code || !strings.Contains(p.Message, c.says) {
			t.Errorf("%s %.100s %s: %+v; want %d, %s, %q", c.method, c.path, c.body, p, c.status, c.code, c.says)
		}
	}
	if p := h.refused("reader", "POST", "/toolbox/box/lsp/start", `{"languageId":"python","pathToProject":"."}`); p.StatusCode != http.StatusForbidden {
		t.Errorf("a start by who only reads: %+v", p)
	}
}

func TestCodeHasItsArguments(t *testing.T) {
	h := open(t)
	h.create(`{"name":"box","networkBlockAll":true}`)
	for _, c := range []struct{ code, want string }{
		{"from __future__ import annotations\nimport sys\nprint(sys.argv[1:])", "['a b', \"it's\"]\n"},
		{"import sys\n\nraise ValueError(len(sys.argv))", "line 3, in <module>"},
	} {
		body, err := json.Marshal(map[string]any{"code": c.code, "language": "python", "argv": []string{"a b", "it's"}})
		must(t, err)
		if status, text := h.ask("writer", "POST", "/toolbox/box/process/code-run", string(body)); status != 200 {
			t.Errorf("%q: %d %s", c.code, status, text)
		} else {
			var r wire.CodeRan
			must(t, json.Unmarshal([]byte(text), &r))
			if !strings.Contains(r.Result, c.want) {
				t.Errorf("%q: %s", c.code, text)
			}
		}
	}
	long, err := json.Marshal(map[string]any{"code": "1", "argv": slices.Repeat([]string{"x"}, 100_000)})
	must(t, err)
	if p := h.refused("writer", "POST", "/toolbox/box/process/code-run", string(long)); p.StatusCode != http.StatusBadRequest || !strings.HasPrefix(p.Message, "argv: ") {
		t.Errorf("too many arguments: %+v", p)
	}
}
