// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcpsetup

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

var (
	here   = Server{Name: "sandpit", URL: "http://127.0.0.1:8080/mcp", Program: "/usr/local/bin/sandpit"}
	there  = Server{Name: "lab", URL: "https://box.example/mcp/orkestr", Profile: "orkestr", Remote: true, Program: "/usr/local/bin/sandpit"}
	forms  = []string{"a variable", "with the token", "started here", "started, for elsewhere", "started, for one that it is told"}
	chosen = func() []Server {
		token, stdio, far, kept := here, here, there, here
		kept.Stdio, kept.Bridge = true, "box"
		token.Token = `spt_a"b\c'd$e`
		stdio.Stdio, stdio.Profile = true, "orkestr"
		far.Stdio = true
		return []Server{here, token, stdio, far, kept}
	}()
)

func TestWhatEachClientReads(t *testing.T) {
	for _, c := range Clients() {
		t.Run(c.ID, func(t *testing.T) {
			var got strings.Builder
			fmt.Fprintf(&got, "# %s, %s\n", c.Title, c.Language())
			for _, f := range c.Files(Env{Home: "/home/ann", Getenv: func(string) string { return "" }}) {
				fmt.Fprintf(&got, "# %s\n", f)
			}
			for i, s := range chosen {
				if s.Token == "" && !c.Refers(s) {
					s.Token = "spt_token"
				}
				fmt.Fprintf(&got, "\n===== %s\n%s\n", forms[i], c.Snippet(s))
				if line := c.Command(s); line != "" {
					fmt.Fprintf(&got, "%s\n", line)
				}
				if link := c.Link(s); link != "" && i == 0 {
					fmt.Fprintf(&got, "%s\n", link)
				}
				if line := c.Command(s); strings.Contains(line, "spt_") {
					t.Errorf("the line has the token: %s", line)
				}
				if strings.Contains(c.Link(s), "spt_") {
					t.Errorf("the link has the token: %s", c.Link(s))
				}
			}
			golden := filepath.Join("testdata", c.ID+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("it changed (-want +got); if that is meant: go test ./internal/mcpsetup -update\n%s", diff)
			}
		})
	}
}

func TestTheTokenStandsWhereItHasTo(t *testing.T) {
	for _, c := range Clients() {
		for i, s := range chosen {
			text := c.Snippet(s)
			if s.Token == "" && (strings.Contains(text, `"Bearer "`) || strings.Contains(text, `""`)) && c.Refers(s) {
				t.Errorf("%s, %s: it refers to nothing:\n%s", c.ID, forms[i], text)
			}
			if named := strings.Contains(text, TokenVar); named != c.Names(s) && !c.asks && (s.Token == "" || !s.Remote) {
				t.Errorf("%s, %s: the variable is named: %v, and Names says %v:\n%s", c.ID, forms[i], named, c.Names(s), text)
			}
		}
	}
}

func TestLinksSayWhatTheFileWould(t *testing.T) {
	c, _ := Find("vscode")
	raw, ok := strings.CutPrefix(c.Link(here), "vscode:mcp/install?")
	text, err := url.PathUnescape(raw)
	var got struct {
		Name, Type, URL string
		Headers         map[string]string
		Inputs          []struct{ ID string }
	}
	if !ok || err != nil || json.Unmarshal([]byte(text), &got) != nil || got.Name != "sandpit" || got.Type != "http" || got.URL != here.URL ||
		got.Headers["Authorization"] != "Bearer ${input:"+got.Inputs[0].ID+"}" {
		t.Errorf("%s: %+v %v", text, got, err)
	}
	c, _ = Find("cursor")
	u, err := url.Parse(c.Link(here))
	if err != nil || u.Scheme != "cursor" || u.Host != "anysphere.cursor-deeplink" || u.Path != "/mcp/install" || u.Query().Get("name") != "sandpit" {
		t.Errorf("%v %v", u, err)
	}
}

func TestFilesAreWhereTheClientLooks(t *testing.T) {
	env := map[string]string{"CODEX_HOME": "/codex", "CLAUDE_CONFIG_DIR": "relative/is/none", "XDG_CONFIG_HOME": "/xdg"}
	e := Env{Home: "/home/ann", Getenv: func(name string) string { return env[name] }}
	for id, want := range map[string]string{
		"codex": "/codex/config.toml", "claude-code": "/home/ann/.claude.json",
		"opencode": "/xdg/opencode/opencode.json", "gemini": "/home/ann/.gemini/settings.json",
	} {
		if c, _ := Find(id); c.Files(e)[0] != want {
			t.Errorf("%s: %v", id, c.Files(e))
		}
	}
}

// merges are files and what they become with the entry E, whose last line end is left out.
var merges = []struct{ name, client, old, want string }{
	{"nothing", "cursor", "", "{\n  \"mcpServers\": {\n    E\n  }\n}\n"},
	{"blanks alone", "cursor", " \n\n", "{\n  \"mcpServers\": {\n    E\n  }\n}\n"},
	{"an empty object", "cursor", "{}", "{\n  \"mcpServers\": {\n    E\n  }\n}"},
	{"others beside it", "cursor", "{\n\t\"mcpServers\": {\n\t\t\"a\": {\"url\": \"x\"}\n\t},\n\t\"z\": [1, 2.50e3]\n}\n", "{\n\t\"mcpServers\": {\n\t\t\"a\": {\"url\": \"x\"},\n\t\tE\n\t},\n\t\"z\": [1, 2.50e3]\n}\n"},
	{"all in one line", "cursor", `{"a":1,"mcpServers":{"b":{}}}`, "{\"a\":1,\"mcpServers\":{\"b\":{},\n  E\n}}"},
	{"comments", "cursor", "// mine\n{\n  // servers\n  \"mcpServers\": {\n    \"a\": {}, // the first\n    /* off: \"b\": {} */\n  },\n}\n// end\n", "// mine\n{\n  // servers\n  \"mcpServers\": {\n    \"a\": {}, // the first\n    E,\n    /* off: \"b\": {} */\n  },\n}\n// end\n"},
	{"a comment behind the last", "cursor", "{\n  \"mcpServers\": {\n    \"a\": {} // \"}\" the first\n  }\n}\n", "{\n  \"mcpServers\": {\n    \"a\": {}, // \"}\" the first\n    E\n  }\n}\n"},
	{"an object with a comment alone", "cursor", "{\n  \"mcpServers\": {\n    // none yet\n  }\n}\n", "{\n  \"mcpServers\": {\n    // none yet\n    E\n  }\n}\n"},
	{"an older entry", "cursor", "{\"mcpServers\": {\"sandpit\": {\"command\": \"x\"}, \"b\": {}}, \"k\": null}", "{\"mcpServers\": {E, \"b\": {}}, \"k\": null}"},
	{"line ends of Windows", "cursor", "{\r\n  \"k\": 1\r\n}\r\n", "{\r\n  \"k\": 1,\r\n  \"mcpServers\": {\r\n    E\r\n  }\r\n}\r\n"},
	{"a key written in escapes", "cursor", "{\"mcp\\u0053ervers\": {\n  \"a\": 1\n}}", "{\"mcp\\u0053ervers\": {\n  \"a\": 1,\n  E\n}}"},
	{"what is asked for", "vscode", "{\n  \"inputs\": [\n    {\"id\": \"other\"}\n  ],\n  \"servers\": {}\n}\n", "{\n  \"inputs\": [\n    {\"id\": \"other\"},\n    {\n      \"type\": \"promptString\",\n      \"id\": \"sandpit-token\",\n      \"description\": \"Token of the sandpit server at http://127.0.0.1:8080/mcp\",\n      \"password\": true\n    }\n  ],\n  \"servers\": {\n    E\n  }\n}\n"},
	{"no tables", "codex", "model = \"o\" # mine\n", "model = \"o\" # mine\n\nE\n"},
	{"other tables", "codex", "[mcp_servers.a]\nurl = \"x\"\n\n[z]\nk = 1", "[mcp_servers.a]\nurl = \"x\"\n\n[z]\nk = 1\n\nE\n"},
	{"an older table in the middle", "codex", "a = 1\n\n[mcp_servers.\"sandpit\"] # old\ncommand = \"x\"\nargs = [\n  \"[z]\",\n]\n[mcp_servers.sandpit.env]\nK = \"v\"\n\n# of z\n[z]\nk = '''\n[mcp_servers.sandpit]\n'''\n", "a = 1\n\nE\n\n# of z\n[z]\nk = '''\n[mcp_servers.sandpit]\n'''\n"},
	{"an older table at the end", "codex", "[z]\nk = 1\n[mcp_servers.sandpit]\nurl = \"old\"\n# last words\n", "[z]\nk = 1\nE\n# last words\n"},
}

func TestAMergeTouchesNothingElse(t *testing.T) {
	for _, m := range merges {
		t.Run(m.name, func(t *testing.T) {
			c, _ := Find(m.client)
			got, err := c.Merge([]byte(m.old), here)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(m.want, folded(t, c, string(got))); diff != "" {
				t.Errorf("(-want +got)\n%s\n%s", diff, got)
			}
			again, err := c.Merge(got, here)
			if err != nil || !bytes.Equal(again, got) {
				t.Errorf("a second time: %v\n%s", err, again)
			}
			moved := here
			moved.URL, moved.Token = "http://other/mcp", "spt_1"
			other, err := c.Merge(got, moved)
			if err != nil || !strings.Contains(string(other), "http://other/mcp") || strings.Contains(strings.ReplaceAll(string(other), "server at http://127.0.0.1:8080", ""), "127.0.0.1") {
				t.Errorf("at another place: %v\n%s", err, other)
			}
			back, err := c.Merge(other, here)
			if err != nil || !bytes.Equal(back, got) {
				t.Errorf("and back: %v\n%s", err, back)
			}
		})
	}
}

// folded is a file with its entry as E.
func folded(t *testing.T, c Client, text string) string {
	t.Helper()
	if c.format == tomlFile {
		return strings.Replace(text, strings.TrimSuffix(tomlTable(c.key, here.Name, c.entry(here)), "\n"), "E", 1)
	}
	from := strings.LastIndex(text, `"sandpit": {`)
	if from < 0 {
		t.Fatalf("there is no entry:\n%s", text)
	}
	root, _, err := parseJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	servers := root.members[0].value
	for _, m := range root.members {
		if m.key == c.key {
			servers = m.value
		}
	}
	m, err := servers.member("sandpit")
	if err != nil {
		t.Fatal(err)
	}
	return text[:m.from] + "E" + text[m.value.to:]
}

func TestWhatCannotBeUnderstoodIsLeftAlone(t *testing.T) {
	const secret = "spt_hidden"
	deep := strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat("}", 300)
	for _, bad := range []struct{ name, client, old string }{
		{"no JSON", "cursor", "mcpServers: x " + secret},
		{"a part of it", "cursor", `{"mcpServers": {"a": "` + secret},
		{"two values", "cursor", `{} {}`},
		{"a list", "cursor", `["` + secret + `"]`},
		{"servers that are none", "cursor", `{"mcpServers": "` + secret + `"}`},
		{"servers that are a list", "cursor", `{"mcpServers": []}`},
		{"servers twice", "cursor", `{"mcpServers": {"a": 1}, "mcpServers": {}}`},
		{"the entry twice", "cursor", `{"mcpServers": {"sandpit": 1, "sandpit": {}}}`},
		{"too deep", "cursor", deep},
		{"comments alone", "cursor", "// nothing\n"},
		{"a comment without end", "cursor", `{} /* `},
		{"bytes that are no text", "cursor", "{\"a\": \"\xff\"}"},
		{"a line in a text", "cursor", "{\"a\": \"\n\"}"},
		{"comments where none are read", "claude-desktop", "{\n// mine\n}"},
		{"a comma too much where none is read", "claude-code", `{"a": 1,}`},
		{"commas alone", "cursor", `{,}`},
		{"inputs that are none", "vscode", `{"inputs": {}}`},
		{"no TOML", "codex", "a = " + secret + "\n"},
		{"a key twice", "codex", "a = 1\na = 2\n"},
		{"servers in one line", "codex", "mcp_servers = { a = { url = \"x\" } }\n"},
		{"the entry in one line", "codex", "[mcp_servers]\nsandpit = { url = \"x\" }\n"},
		{"the entry by dots", "codex", "mcp_servers.sandpit.url = \"x\"\n"},
		{"entries as a list", "codex", "[[mcp_servers.sandpit]]\nurl = \"x\"\n[[mcp_servers.sandpit]]\nurl = \"y\"\n[z]\n[mcp_servers.other]\n"},
		{"too large", "cursor", "{}" + strings.Repeat(" ", MaxFile)},
	} {
		t.Run(bad.name, func(t *testing.T) {
			c, _ := Find(bad.client)
			got, err := c.Merge([]byte(bad.old), here)
			if bad.name == "entries as a list" && err == nil { // both were ours, and are one now
				return
			}
			if err == nil {
				t.Fatalf("it became\n%s", got)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error tells what is in it: %v", err)
			}
		})
	}
	for _, name := range []string{"", "a b", "a.b", `a"`, "é", strings.Repeat("a", 65), "a\nb"} {
		s := here
		s.Name = name
		c, _ := Find("codex")
		if _, err := c.Merge(nil, s); err == nil {
			t.Errorf("the name %q is taken", name)
		}
	}
}

// Whatever is merged into, it is what it was but for the entry, or refused.
func FuzzMerge(f *testing.F) {
	for _, m := range merges {
		f.Add(m.client == "codex", []byte(m.old))
	}
	f.Add(true, []byte("x = \"\"\"\n[mcp_servers.sandpit]\n\"\"\"\"\n[a.'b.c']\nq = nan"))
	f.Fuzz(func(t *testing.T, isTOML bool, old []byte) {
		id := "vscode"
		if isTOML {
			id = "codex"
		}
		c, _ := Find(id)
		got, err := c.Merge(old, here)
		if err != nil {
			return
		}
		again, err := c.Merge(got, here)
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%q became %q, and that %q: %v", old, got, again, err)
		}
		if len(bytes.TrimSpace(old)) == 0 {
			return
		}
		// Every byte that was there is there still, in its order, but for the entry that was.
		if before, err := c.read(old); err == nil && c.entries(before)["sandpit"] == nil && before["inputs"] == nil && !within(got, bytes.TrimRight(old, " \t\r\n")) {
			t.Fatalf("%q became %q", old, got)
		}
	})
}

// within reports whether all of part stands in text, in its order, blanks aside.
func within(text, part []byte) bool {
	for _, c := range part {
		if c == ' ' || c == '\t' || c == '\r' || c == '\n' {
			continue
		}
		i := bytes.IndexByte(text, c)
		if i < 0 {
			return false
		}
		text = text[i+1:]
	}
	return true
}
