// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"bytes"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/api/filelink"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/mcp"
	"sandpit.dev/api/service"
	"sandpit.dev/engine/ports"
	"sandpit.dev/engine/skills"
	"sandpit.dev/sandbox"
)

// linked returns what a link in a text grants.
func (h *house) linked(text string) filelink.Grant {
	h.t.Helper()
	address := regexp.MustCompile(`https?://\S+/files/\S+`).FindString(text)
	if !strings.HasPrefix(address, h.url+"/files/") {
		h.t.Fatalf("no link of this server in:\n%s", text)
	}
	u, err := url.Parse(address)
	if err != nil {
		h.t.Fatal(err)
	}
	token, _, err := filelink.Parse(u.EscapedPath())
	if err != nil {
		h.t.Fatal(err)
	}
	links, err := filelink.New(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		h.t.Fatal(err)
	}
	g, err := links.Read(token, time.Now())
	if err != nil {
		h.t.Fatal(err)
	}
	return g
}

func resourceLinks(res *sdk.CallToolResult) (uris []string) {
	for _, c := range res.Content {
		if l, ok := c.(*sdk.ResourceLink); ok {
			uris = append(uris, l.URI)
		}
	}
	return uris
}

func TestGetFileURL(t *testing.T) {
	t.Parallel()
	for _, version := range []string{handshake, stateless} {
		t.Run(version, func(t *testing.T) {
			h := open(t)
			s := h.session("t-alice", version, nil)
			box := structured[handle](t, call(t, s, "create_sandbox", arguments{"name": "box"}))
			ok(t, s, "write_file", arguments{"sandbox": "box", "path": "out/a b.csv", "content": "x,y\n"})
			for _, path := range []string{"out/a b.csv", "/workspace/out/a b.csv"} {
				res := call(t, s, "get_file_url", arguments{"sandbox": "box", "path": path, "expires_minutes": 5})
				got := text(t, res)
				wantParts(t, got, "/workspace/out/a b.csv · text/csv, 4 bytes · sandbox box\n", "good until ")
				g := h.linked(got)
				if g.Sandbox != box.ID || g.Project != "default" || g.Path != "/workspace/out/a b.csv" || time.Until(g.Expires) > 5*time.Minute || time.Until(g.Expires) < 4*time.Minute {
					t.Errorf("the link grants %+v", g)
				}
				if got := resourceLinks(res); len(got) != 1 || got[0] != "sandbox://"+box.ID+"/workspace/out/a%20b.csv" {
					t.Errorf("resources: %q", got)
				}
			}
			ok(t, h.session("t-reader", version, nil), "get_file_url", arguments{"sandbox": "box", "path": "out/a b.csv"})
			h.wrong(t, "get_file_url", arguments{"sandbox": "box", "path": "none"}, "error (not_found)", `there is no "none"`)
			h.wrong(t, "get_file_url", arguments{"sandbox": "box", "path": "out"}, "error (invalid)", "list_files")
			h.wrong(t, "get_file_url", arguments{"sandbox": "box", "path": "out/a b.csv", "expires_minutes": 20000}, "argument expires_minutes 20000 is outside 1 to 10080")
			stranger := call(t, h.session("t-stranger", version, nil), "get_file_url", arguments{"sandbox": box.ID, "path": "out/a b.csv"})
			if !stranger.IsError {
				t.Errorf("a stranger got %s", text(t, stranger))
			}
		})
	}
}

func TestExposePort(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.alice()
	box := structured[handle](t, call(t, s, "create_sandbox", arguments{"name": "box"}))
	got := ok(t, s, "expose_port", arguments{"sandbox": "box", "port": 8000, "expires_minutes": 10})
	wantParts(t, got, "port 8000 of sandbox box:\nhttp://8000-"+box.ID+".example/?sandpit_token=token-"+box.ID+"-8000\n",
		"for programs that cannot resolve that name: "+h.url+"/preview/"+box.ID+"/8000/?sandpit_token=", "good until ",
		"note: nothing listens on port 8000 yet")
	if ev := h.lastEvent("box", sandbox.EventPreview); ev == nil || ev.Via != "mcp" || ev.Actor != "alice" {
		t.Errorf("the event: %+v", ev)
	}
	h.wrong(t, "expose_port", arguments{"sandbox": "box", "port": 0}, "argument port 0 is outside 1 to 65535")
	h.wrong(t, "expose_port", arguments{"sandbox": "box"}, "argument port is missing")
	res := call(t, h.session("t-reader", handshake, nil), "expose_port", arguments{"sandbox": "box", "port": 1})
	if wantParts(t, text(t, res), "error (denied)", "sandboxes:write"); !res.IsError {
		t.Error("a reader exposed a port")
	}
}

// TestAServerWithoutLinks says what there is in their place.
func TestAServerWithoutLinks(t *testing.T) {
	t.Parallel()
	h := open(t)
	handler, err := mcp.New(mcp.Options{Services: service.Of(h.engine, h.inside, ports.New(h.engine), h.code, h.runs, deskOf(h.engine), skills.New(h.engine, skills.Options{})), Caller: guard.Caller})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(handler.Close)
	g, err := guard.New(guard.Options{Tokens: callers})
	if err != nil {
		t.Fatal(err)
	}
	h.url = newServer(t, g.Wrap("mcp", handler))
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	ok(t, s, "write_file", arguments{"sandbox": "box", "path": "f", "content": "x"})
	h.wrong(t, "get_file_url", arguments{"sandbox": "box", "path": "f"}, "error (unsupported)", "read_file")
	h.wrong(t, "expose_port", arguments{"sandbox": "box", "port": 80}, "error (unsupported)", "run_command")
}

func TestBinaryFilesAreLinked(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.alice()
	box := structured[handle](t, call(t, s, "create_sandbox", arguments{"name": "box"}))
	ok(t, s, "write_file", arguments{"sandbox": "box", "path": "blob.bin", "content": "AAECAw==", "encoding": "base64"})
	ok(t, s, "run_command", arguments{"sandbox": "box", "command": `{ printf '\211PNG\r\n\032\n'; head -c 1100000 /dev/zero; } > huge.png`})
	for path, want := range map[string][]string{
		"blob.bin": {"/workspace/blob.bin · application/octet-stream, 4 bytes · not shown: a binary file\n", "run_command", "get_file_url"},
		"huge.png": {"/workspace/huge.png · image/png, 1100008 bytes · not shown: an image of more than 1048576 bytes\n", "make it smaller", "get_file_url"},
	} {
		res := call(t, s, "read_file", arguments{"sandbox": "box", "path": path})
		got := text(t, res)
		wantParts(t, got, want...)
		if g := h.linked(got); g.Path != "/workspace/"+path {
			t.Errorf("%s: the link grants %+v", path, g)
		}
		if uris := resourceLinks(res); len(uris) != 1 || uris[0] != "sandbox://"+box.ID+"/workspace/"+path {
			t.Errorf("%s: resources %q", path, uris)
		}
	}
}

func TestWhatACommandLeavesUnderArtifactsIsLinked(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.alice()
	box := structured[handle](t, call(t, s, "create_sandbox", arguments{"name": "box"}))
	run := func(command string) *sdk.CallToolResult {
		t.Helper()
		return call(t, s, "run_command", arguments{"sandbox": "box", "command": command})
	}
	// The memory runtime's commands know the folder by its place beside the workspace.
	first := run("mkdir -p ../artifacts/sub && cd ../artifacts && echo 1 > a.txt && echo 2 > sub/b.png && touch -d '2 days ago' old")
	wantParts(t, text(t, first), "\nartifacts (2):\n  /artifacts/a.txt (2 bytes) "+h.url+"/files/", "  /artifacts/sub/b.png (2 bytes) http")
	want := []string{"sandbox://" + box.ID + "/artifacts/a.txt", "sandbox://" + box.ID + "/artifacts/sub/b.png"}
	if got := resourceLinks(first); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("resources: got %q, want %q", got, want)
	}
	if res := run("touch -d '1 minute ago' ../artifacts/*.txt ../artifacts/sub/*"); len(resourceLinks(res)) != 0 || strings.Contains(text(t, res), "artifacts") {
		t.Errorf("what was there before is told again: %s", text(t, res))
	}
	many := run("cd ../artifacts && for i in $(seq 10 39); do echo $i > f$i; done")
	wantParts(t, text(t, many), "artifacts (30):", "… and 10 more")
	if got := resourceLinks(many); len(got) != 20 {
		t.Errorf("%d links, want 20", len(got))
	}
}
