// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/access"
	"sandpit.dev/api/mcp/profile/daytona"
	"sandpit.dev/api/service"
	"sandpit.dev/engine"
	"sandpit.dev/engine/volume"
	"sandpit.dev/internal/checktest"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/sandbox"
)

// daytona is a session with that profile, and a sandbox of it.
func (h *house) daytona() (s *sdk.ClientSession, id string) {
	h.t.Helper()
	s = h.at("/mcp/"+daytona.Name, "t-alice", handshake)
	return s, newDaytona(h.t, s, nil)
}

// newDaytona makes a sandbox, and gives its id.
func newDaytona(t testing.TB, s *sdk.ClientSession, args arguments) string {
	t.Helper()
	got := ok(t, s, "create_sandbox", args)
	id, found := strings.CutPrefix(got, "Created new sandbox ")
	if !found || !sandbox.ValidID(id) {
		t.Fatalf("got %q, want an id", got)
	}
	return id
}

func TestDaytonaToolsList(t *testing.T) {
	t.Parallel()
	h := open(t)
	want := []string{
		"create_folder", "create_sandbox", "delete_file", "destroy_sandbox", "execute_command", "file_download", "file_upload",
		"get_file_info", "git_clone", "list_files", "move_file", "preview_link",
	}
	for _, version := range []string{handshake, stateless} {
		res := listed(t, h.at("/mcp/daytona", "t-alice", version))
		if got := toolNames(res); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", version, got, want)
		}
		if version == handshake {
			checkTools(t, res.Tools, "testdata/tools-daytona.json", 2500)
		}
		got := toolNames(listed(t, h.at("/mcp/daytona", "t-reader", version)))
		if want := []string{"file_download", "get_file_info", "list_files"}; !slices.Equal(got, want) {
			t.Errorf("%s: of a reader's token: got %v, want %v", version, got, want)
		}
	}
}

// What a client of Daytona's sends: names and what must not be missing.
func TestASizeOfDaytonasCreate(t *testing.T) {
	t.Parallel()
	h := open(t)
	s, _ := h.daytona()
	newDaytona(t, s, arguments{"name": "sized", "size": "medium", "memory": 1})
	if got := structured[handle](t, call(t, h.alice(), "create_sandbox", arguments{"name": "sized"})); got.Created || got.CPUs != 2 || got.MemoryMB != 1024 {
		t.Errorf("got %v CPU and %d MiB, want 2 and 1024", got.CPUs, got.MemoryMB)
	}
	refused(t, s, "create_sandbox", arguments{"size": "huge"}, `argument size "huge" is not valid; use small, medium, large`)
}

func TestDaytonaSchemas(t *testing.T) {
	t.Parallel()
	asked := map[string]struct{ required, optional []string }{
		"create_sandbox": {nil, []string{
			"id", "name", "target", "snapshot", "user", "env", "labels", "public", "cpu", "gpu", "memory", "disk", "autoStopInterval",
			"ttlMinutes", "autoPauseInterval", "autoArchiveInterval", "autoDeleteInterval", "volumes", "buildInfo", "networkBlockAll", "networkAllowList",
			"size", // ours alone
		}},
		"destroy_sandbox": {[]string{"id"}, nil},
		"execute_command": {[]string{"id", "command"}, nil},
		"file_upload":     {[]string{"id", "filePath", "content", "encoding", "overwrite"}, nil},
		"file_download":   {[]string{"id", "filePath"}, nil},
		"get_file_info":   {[]string{"id", "filePath"}, nil},
		"delete_file":     {[]string{"id", "filePath"}, nil},
		"list_files":      {[]string{"id"}, []string{"path"}},
		"create_folder":   {[]string{"id", "folderPath"}, []string{"mode"}},
		"move_file":       {[]string{"id", "sourcePath", "destPath"}, nil},
		"git_clone":       {[]string{"id", "url"}, []string{"path", "branch", "commitId", "username", "password"}},
		"preview_link":    {[]string{"id", "port", "description", "checkServer"}, nil},
	}
	s := open(t).at("/mcp/daytona", "t-alice", handshake)
	for _, tool := range listed(t, s).Tools {
		want := asked[tool.Name]
		var schema struct {
			Properties map[string]struct{ Minimum, Maximum *float64 }
			Required   []string
		}
		data, err := json.Marshal(tool.InputSchema)
		if err == nil {
			err = json.Unmarshal(data, &schema)
		}
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(schema.Required, want.required) {
			t.Errorf("%s requires %v, want %v", tool.Name, schema.Required, want.required)
		}
		all := slices.Concat(want.required, want.optional)
		if len(schema.Properties) != len(all) {
			t.Errorf("%s has %d arguments, want %d", tool.Name, len(schema.Properties), len(all))
		}
		for _, name := range all {
			if _, there := schema.Properties[name]; !there {
				t.Errorf("%s has no argument %s", tool.Name, name)
			}
		}
		for name, most := range map[string]float64{"cpu": 4, "gpu": 1, "memory": 8, "disk": 10} {
			if p, there := schema.Properties[name]; there && (p.Maximum == nil || *p.Maximum != most || p.Minimum != nil) {
				t.Errorf("%s: the bounds of %s: %v to %v", tool.Name, name, p.Minimum, p.Maximum)
			}
		}
		if len(want.required) > 0 {
			refused(t, s, tool.Name, nil, "argument id is missing")
			args := arguments{"id": "nosuchsandbox123", "filePath": "x", "content": "x", "encoding": "text", "overwrite": true,
				"command": "true", "folderPath": "x", "sourcePath": "x", "destPath": "y", "url": "https://example.org/x", "port": 80, "description": "d", "checkServer": true}
			refused(t, s, tool.Name, args, "error (not_found)", "next: make one with create_sandbox, or use one that there is: none")
		}
	}
}

func TestDaytonaSandboxes(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.at("/mcp/daytona", "t-alice", handshake)
	look := func(id string) *sandbox.Sandbox {
		t.Helper()
		b, err := h.engine.Get(t.Context(), callers["t-alice"], id)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	plain := look(newDaytona(t, s, nil))
	if plain.IdleTimeout != 15*time.Minute || plain.OnIdle != sandbox.IdleStop || !plain.ExpiresAt.IsZero() || plain.Retention != 0 || plain.AutoDelete {
		t.Errorf("of a create that says nothing: %+v", plain.Clocks)
	}
	full := look(newDaytona(t, s, arguments{
		"name": "app", "target": "us", "snapshot": "python", "user": "daytona", "env": arguments{"A": "b"}, "labels": arguments{"l": "m"}, "public": false,
		"cpu": 2, "gpu": 0, "memory": 1, "disk": 3, "autoStopInterval": 7, "ttlMinutes": 90, "autoArchiveInterval": 10080, "autoDeleteInterval": -1,
		"volumes": []any{}, "networkBlockAll": true,
	}))
	if full.Key != "app" || full.Image != "python" || full.Env["A"] != "b" || full.Metadata["l"] != "m" || full.Limits.CPU != 2 || full.Limits.MemoryMB != 1024 ||
		full.Limits.DiskMB != 3072 || full.IdleTimeout != 7*time.Minute || full.ExpiresAt.Sub(full.CreatedAt) != 90*time.Minute || full.Retention != 0 || full.Network.Mode != sandbox.NetworkOff {
		t.Errorf("got %+v", full)
	}
	for name, tc := range map[string]struct {
		args arguments
		want func(*sandbox.Sandbox) bool
	}{
		"NeverStops":        {arguments{"autoStopInterval": 0}, func(b *sandbox.Sandbox) bool { return b.IdleTimeout == 0 }},
		"Pauses":            {arguments{"autoPauseInterval": 5, "autoStopInterval": 0}, func(b *sandbox.Sandbox) bool { return b.OnIdle == sandbox.IdlePause && b.IdleTimeout == 5*time.Minute }},
		"GoesWhenItStops":   {arguments{"autoDeleteInterval": 0}, func(b *sandbox.Sandbox) bool { return b.AutoDelete }},
		"GoesSomeTimeAfter": {arguments{"autoDeleteInterval": 60}, func(b *sandbox.Sandbox) bool { return b.Retention == time.Hour }},
		"OfOneFROMLine":     {arguments{"buildInfo": arguments{"dockerfileContent": "# a\n\nFROM node\n"}}, func(b *sandbox.Sandbox) bool { return b.Image == "node" }},
	} {
		t.Run(name, func(t *testing.T) {
			if b := look(newDaytona(t, s, tc.args)); !tc.want(b) {
				t.Errorf("got %+v", b)
			}
		})
	}
	for name, tc := range map[string]struct {
		args  arguments
		parts []string
	}{
		"TooManyCores":   {arguments{"cpu": 5}, []string{"argument cpu 5 is outside 0 to 4"}},
		"TooLittle":      {arguments{"memory": 0.001}, []string{"argument memory 1 is outside"}},
		"GPU":            {arguments{"gpu": 1}, []string{"error (unsupported)", "next: leave gpu out"}},
		"Public":         {arguments{"public": true}, []string{"error (unsupported)", "preview_link"}},
		"Region":         {arguments{"target": "eu"}, []string{"error (unsupported)", `no region "eu"`}},
		"User":           {arguments{"user": "root"}, []string{"error (unsupported)", "user sandbox"}},
		"StopAndPause":   {arguments{"autoStopInterval": 5, "autoPauseInterval": 5}, []string{"argument autoPauseInterval cannot be combined with autoStopInterval"}},
		"PauseAndDelete": {arguments{"autoPauseInterval": 5, "autoDeleteInterval": 0}, []string{"argument autoDeleteInterval 0 destroys it when it stops"}},
		"Negative":       {arguments{"autoStopInterval": -1}, []string{"argument autoStopInterval -1 is outside 0"}},
		"Dockerfile":     {arguments{"buildInfo": arguments{"dockerfileContent": "FROM node\nRUN make"}}, []string{"error (unsupported)", "builds no Dockerfiles"}},
		"NoDockerfile":   {arguments{"buildInfo": arguments{}}, []string{"argument buildInfo has no dockerfileContent"}},
		"Context":        {arguments{"buildInfo": arguments{"dockerfileContent": "FROM node\nCOPY a b", "contextHashes": []any{"x"}}}, []string{"argument buildInfo has contextHashes"}},
		"TwoOrigins":     {arguments{"snapshot": "node", "buildInfo": arguments{"dockerfileContent": "FROM node"}}, []string{"argument snapshot cannot be combined with buildInfo"}},
		"NoImage":        {arguments{"snapshot": "none"}, []string{"error (not_found)", `"none"`}},
		"NoSnapshot":     {arguments{"snapshot": "abcdefghijklmnop"}, []string{"error (not_found)"}},
		"Volume":         {arguments{"volumes": []any{arguments{"volumeId": "none", "mountPath": "/data"}}}, []string{"error ("}},
		"Volumes":        {arguments{"volumes": "none"}, []string{"argument volumes is", "not a list"}},
		"BlockedList":    {arguments{"networkBlockAll": true, "networkAllowList": "example.org"}, []string{"argument networkAllowList is given, and networkBlockAll blocks all of it"}},
		"BadList":        {arguments{"networkAllowList": "not a name"}, []string{"error (invalid)", "not a name"}},
		"NoNetwork":      {arguments{"networkAllowList": "example.org,192.0.2.0/24"}, []string{"error (unsupported)"}}, // of the memory runtime
	} {
		t.Run(name, func(t *testing.T) { refused(t, s, "create_sandbox", tc.args, tc.parts...) })
	}

	t.Run("IsUsedAgain", func(t *testing.T) {
		if got := ok(t, s, "create_sandbox", arguments{"id": string(full.ID)}); got != "Reusing existing sandbox "+string(full.ID) {
			t.Errorf("got %q", got)
		}
		if got := ok(t, s, "create_sandbox", arguments{"name": "app"}); got != "Reusing existing sandbox "+string(full.ID) {
			t.Errorf("by its name: got %q", got)
		}
		refused(t, s, "create_sandbox", arguments{"id": "nosuchsandbox123"}, "error (not_found)")
		if _, err := h.engine.Pause(t.Context(), callers["t-alice"], "app"); err != nil {
			t.Fatal(err)
		}
		refused(t, s, "create_sandbox", arguments{"id": "app"}, "error (state)", "is paused")
		refused(t, s, "execute_command", arguments{"id": "app", "command": "true"}, "error (state)", "no tool here")
	})
	for range 2 {
		if got := ok(t, s, "destroy_sandbox", arguments{"id": string(plain.ID)}); got != "Destroyed sandbox with ID "+string(plain.ID) {
			t.Errorf("got %q", got)
		}
	}
}

// roomy is an engine whose runtime gives sandboxes a network, and what was asked of it.
type roomy struct {
	service.Engine
	networks []sandbox.NetworkMode
	asked    *sandbox.NetworkPolicy
	mounts   []volume.Mount
}

func (e *roomy) Networks() []sandbox.NetworkMode { return e.networks }

func (e *roomy) Info(ctx context.Context, c access.Caller) (engine.Info, error) {
	i, err := e.Engine.Info(ctx, c)
	for n := range i.Runtimes {
		i.Runtimes[n].Features[engine.FeatureNetwork] = engine.FeatureInfo{Supported: true}
	}
	return i, err
}

func (e *roomy) Create(ctx context.Context, c access.Caller, r engine.CreateRequest) (*sandbox.Sandbox, bool, error) {
	e.asked, r.Network = r.Network, nil
	e.mounts, r.Mounts = r.Mounts, nil
	return e.Engine.Create(ctx, c, r)
}

func TestDaytonaNetworks(t *testing.T) {
	t.Parallel()
	h := open(t)
	all := []sandbox.NetworkMode{sandbox.NetworkOff, sandbox.NetworkRestricted, sandbox.NetworkOpen}
	for name, tc := range map[string]struct {
		most int // of the modes
		args arguments
		want *sandbox.NetworkPolicy
		note string
	}{
		"OpenUnlessItIsSaid":   {3, nil, &sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}, ""},
		"OpenWhereNotBlocked":  {3, arguments{"networkBlockAll": false}, &sandbox.NetworkPolicy{Mode: sandbox.NetworkOpen}, ""},
		"OffWhereOpenIsDenied": {2, nil, nil, "note: the network is off, since this server allows no sandbox all of the internet; networkAllowList asks for a part"},
		"Blocked":              {3, arguments{"networkBlockAll": true}, &sandbox.NetworkPolicy{Mode: sandbox.NetworkOff}, ""},
		"AList": {3, arguments{"networkAllowList": " example.org, 192.0.2.0/24,,*.example.com"}, &sandbox.NetworkPolicy{
			Mode: sandbox.NetworkRestricted, AllowDomains: []string{"example.org", "*.example.com"}, AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := &roomy{Engine: h.engine, networks: all[:tc.most]}
			c := *h
			_, c.url = serve(t, e, h.inside, h.runs, h.code)
			res := call(t, c.at("/mcp/daytona", "t-alice", handshake), "create_sandbox", tc.args)
			if res.IsError || (e.asked == nil) != (tc.want == nil) || tc.want != nil && !e.asked.Equal(*tc.want) {
				t.Errorf("asked for %+v, want %+v: %s", e.asked, tc.want, text(t, res))
			}
			switch {
			case tc.note == "" && len(res.Content) != 1:
				t.Errorf("%d parts, want the answer alone", len(res.Content))
			case tc.note != "" && (len(res.Content) != 2 || res.Content[1].(*sdk.TextContent).Text != tc.note):
				t.Errorf("got %v, want the note %q", res.Content, tc.note)
			}
		})
	}

	t.Run("OffWhereThereIsNone", func(t *testing.T) {
		res := call(t, h.at("/mcp/daytona", "t-alice", handshake), "create_sandbox", nil)
		if len(res.Content) != 2 || !strings.Contains(res.Content[1].(*sdk.TextContent).Text, "this server can give no sandbox one") {
			t.Errorf("got %v", res.Content)
		}
	})

	t.Run("Volumes", func(t *testing.T) {
		e := &roomy{Engine: h.engine, networks: all}
		c := *h
		_, c.url = serve(t, e, h.inside, h.runs, h.code)
		s := c.at("/mcp/daytona", "t-alice", handshake)
		newDaytona(t, s, arguments{"volumes": []any{arguments{"volumeId": "v", "mountPath": "/data"}}})
		if want := []volume.Mount{{Volume: "v", Path: "/data"}}; !slices.Equal(e.mounts, want) {
			t.Errorf("got %+v, want %+v", e.mounts, want)
		}
		refused(t, s, "create_sandbox", arguments{"volumes": []any{arguments{"volumeId": "v", "mountPath": "/data", "readOnly": true}}}, "argument volumes[0].readOnly is not known")
	})
}

func TestDaytonaReadersOnlyRead(t *testing.T) {
	t.Parallel()
	h := open(t)
	s, id := h.daytona()
	ok(t, s, "file_upload", arguments{"id": id, "filePath": "f", "content": "x", "encoding": "text", "overwrite": true})
	reader := h.at("/mcp/daytona", "t-reader", handshake)
	ok(t, reader, "list_files", arguments{"id": id})
	ok(t, reader, "get_file_info", arguments{"id": id, "filePath": "f"})
	ok(t, reader, "file_download", arguments{"id": id, "filePath": "f"})
	for _, tool := range listed(t, s).Tools {
		if !tool.Annotations.ReadOnlyHint {
			refused(t, reader, tool.Name, arguments{"id": id}, "error (denied)", "sandboxes:write")
		}
	}
	stranger := h.at("/mcp/daytona", "t-stranger", handshake)
	refused(t, stranger, "file_download", arguments{"id": id, "filePath": "f"}, "error (not_found)", "that there is: none")
	refused(t, stranger, "destroy_sandbox", arguments{"id": id}, "error (not_found)")
}

type daytonaOutcome struct {
	Stdout, Stderr string
	ExitCode       int    `json:"exit_code"`
	ErrorType      string `json:"error_type"`
}

func TestDaytonaExecute(t *testing.T) {
	t.Parallel()
	h := open(t)
	s, id := h.daytona()
	got := read[daytonaOutcome](t, s, "execute_command", arguments{"id": id, "command": "cd /; echo; echo '<out>'; echo err >&2; exit 4"})
	if want := (daytonaOutcome{"<out>", "err", 4, ""}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := read[daytonaOutcome](t, s, "execute_command", arguments{"id": id, "command": "kill -9 $$"}); got.ExitCode == 0 {
		t.Errorf("of one that is killed: %+v", got)
	}
	res := call(t, s, "execute_command", arguments{"id": id, "command": "seq 100000"})
	if len(res.Content) != 2 || len(text(t, res)) > 30_000 {
		t.Errorf("of much output: %d parts, the first of %d bytes", len(res.Content), len(text(t, res)))
	} else {
		wantParts(t, res.Content[1].(*sdk.TextContent).Text, "all of it is in the file /tmp/sandpit/", "file_download")
	}
	refused(t, s, "execute_command", arguments{"id": id}, "argument command is missing")
	refused(t, s, "execute_command", arguments{"id": id, "command": ""}, "argument command is empty")
}

type daytonaFile struct {
	Name, Path, Mode, Permissions, Owner, Group string
	IsDir                                       bool
	Size                                        int64
	ModTime                                     string
	ModifiedAt                                  time.Time
}

// png is the smallest of its kind.
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func TestDaytonaFiles(t *testing.T) {
	t.Parallel()
	h := open(t)
	s, id := h.daytona()
	upload := func(path, content, encoding string, overwrite bool) arguments {
		return arguments{"id": id, "filePath": path, "content": content, "encoding": encoding, "overwrite": overwrite}
	}
	type part struct{ Type, Text, MimeType string }
	if got := ok(t, s, "file_upload", upload("a/b.txt", "<one>", "text", false)); got != "File uploaded successfully: a/b.txt" {
		t.Errorf("got %q", got)
	}
	refused(t, s, "file_upload", upload("a/b.txt", "two", "text", false), "error (exists)", "overwrite is false", "next: set overwrite")
	refused(t, s, "file_upload", upload("a/c.txt", "not base64!", "base64", true), "argument content is not base64")
	refused(t, s, "file_upload", upload("", "x", "text", true), "argument filePath is empty")
	if got := read[[]part](t, s, "file_download", arguments{"id": id, "filePath": "a/b.txt"}); len(got) != 1 || got[0] != (part{"text", "<one>", ""}) {
		t.Errorf("got %+v", got)
	}
	ok(t, s, "file_upload", upload("a/b.txt", "two", "text", true))
	if got := read[[]part](t, s, "file_download", arguments{"id": id, "file_path": "/workspace/a/b.txt"}); got[0].Text != "two" {
		t.Errorf("replaced: got %+v", got)
	}

	t.Run("ImagesAreSeen", func(t *testing.T) {
		ok(t, s, "file_upload", upload("plot.png", png, "base64", true))
		ok(t, s, "file_upload", upload("plot.json", `{"data": "data:image/png;base64,`+png+`"}`, "text", true))
		for _, path := range []string{"plot.png", "plot.json"} {
			res := call(t, s, "file_download", arguments{"id": id, "filePath": path})
			if got := text(t, res); got != `[{"type":"image","mimeType":"image/png"}]` || len(res.Content) != 2 {
				t.Fatalf("%s: got %s and %d parts", path, got, len(res.Content))
			}
			if image := res.Content[1].(*sdk.ImageContent); base64.StdEncoding.EncodeToString(image.Data) != png || image.MIMEType != "image/png" {
				t.Errorf("%s: another image", path)
			}
		}
		for _, odd := range []string{`{"data": 1}`, `{"data": "aGVsbG8="}`, `[1]`, `{`} {
			ok(t, s, "file_upload", upload("odd.json", odd, "text", true))
			if got := read[[]part](t, s, "file_download", arguments{"id": id, "filePath": "odd.json"}); got[0].Text != odd {
				t.Errorf("got %+v", got)
			}
		}
	})

	t.Run("WhatCannotBeShownHasALink", func(t *testing.T) {
		ok(t, s, "execute_command", arguments{"id": id, "command": `printf 'a\0b' > bin; seq 100000 > long; { printf '\x89PNG\r\n\x1a\n'; head -c 1200000 /dev/zero; } > big.png`})
		for path, parts := range map[string][]string{
			"bin":     {"error (unsupported)", "/workspace/bin (3 bytes) is not text"},
			"long":    {"error (too_large)", "more text than a model is given"},
			"big.png": {"error (too_large)", "image of more than 1 MiB"},
		} {
			res := call(t, s, "file_download", arguments{"id": id, "filePath": path})
			wantParts(t, text(t, res), append(parts, "execute_command", "or download it until ")...)
			if g := h.linked(text(t, res)); !res.IsError || g.Sandbox != id || g.Path != "/workspace/"+path {
				t.Errorf("%s: the link grants %+v", path, g)
			}
		}
	})
	refused(t, s, "file_download", arguments{"id": id, "filePath": "none"}, "error (not_found)", `there is no "none"`)
	refused(t, s, "file_download", arguments{"id": id, "filePath": "a"}, "error (invalid)", "list_files")

	t.Run("Information", func(t *testing.T) {
		got := read[daytonaFile](t, s, "get_file_info", arguments{"id": id, "filePath": "a/b.txt"})
		if got.Name != "b.txt" || got.Path != "/workspace/a/b.txt" || got.IsDir || got.Size != 3 || got.Mode != "-rw-r--r--" || got.Permissions != "0644" || got.Owner == "" || got.Group == "" || got.ModTime == "" || got.ModifiedAt.IsZero() {
			t.Errorf("got %+v", got)
		}
		if got := read[daytonaFile](t, s, "get_file_info", arguments{"id": id, "filePath": "a"}); !got.IsDir || got.Mode != "drwxr-xr-x" {
			t.Errorf("of a directory: %+v", got)
		}
		refused(t, s, "get_file_info", arguments{"id": id, "filePath": "b"}, "error (not_found)")
		refused(t, s, "get_file_info", arguments{"id": id, "filePath": ""}, "argument filePath is empty")
	})

	t.Run("Folders", func(t *testing.T) {
		if got := ok(t, s, "create_folder", arguments{"id": id, "folderPath": "x/y", "mode": "0700"}); got != "Created folder: x/y" {
			t.Errorf("got %q", got)
		}
		ok(t, s, "create_folder", arguments{"id": id, "folderPath": "x/y"})
		refused(t, s, "create_folder", arguments{"id": id, "folderPath": "z", "mode": "rwx"}, `argument mode "rwx" is not a valid octal permission`)
		refused(t, s, "create_folder", arguments{"id": id, "folderPath": "a/b.txt/c"}, "error (")
		got := read[[]daytonaFile](t, s, "list_files", arguments{"id": id, "path": "x"})
		checktest.Len(t, "got", got, 1)
		checktest.Equal(t, "Name", got[0].Name, "y")
		checktest.Equal(t, "IsDir", got[0].IsDir, true)
		checktest.Equal(t, "Permissions", got[0].Permissions, "0700")
		if got := ok(t, s, "list_files", arguments{"id": id, "path": "x/y"}); got != "[]" {
			t.Errorf("of an empty folder: %s", got)
		}
		if got := read[[]daytonaFile](t, s, "list_files", arguments{"id": id}); len(got) < 5 {
			t.Errorf("of the default directory: %+v", got)
		}
		refused(t, s, "list_files", arguments{"id": id, "path": "none"}, "error (not_found)")
		refused(t, s, "list_files", arguments{"id": id, "path": "bin"}, "error (invalid)", "use file_download")
	})

	t.Run("MovedAndDeleted", func(t *testing.T) {
		if got := ok(t, s, "move_file", arguments{"id": id, "sourcePath": "a/b.txt", "destPath": "x/c.txt"}); got != "Moved file from a/b.txt to x/c.txt" {
			t.Errorf("got %q", got)
		}
		refused(t, s, "move_file", arguments{"id": id, "sourcePath": "a/b.txt", "destPath": "b"}, "error (not_found)")
		refused(t, s, "move_file", arguments{"id": id, "sourcePath": "bin", "destPath": "x/c.txt"}, "error (exists)")
		for _, output := range []string{"", "there was nothing"} {
			if got := ok(t, s, "delete_file", arguments{"id": id, "filePath": "x"}); got != strings.TrimSuffix("Deleted file: x\nOutput: "+output, "\n") {
				t.Errorf("got %q", got)
			}
		}
		refused(t, s, "delete_file", arguments{"id": id, "filePath": ""}, "argument filePath is empty")
		refused(t, s, "delete_file", arguments{"id": id, "filePath": "a\x00b"}, "error (invalid)")
	})
}

func TestDaytonaClone(t *testing.T) {
	t.Parallel()
	skiptest.WithoutGit(t)
	h := open(t)
	s, id := h.daytona()
	run := func(command string) string {
		t.Helper()
		got := read[daytonaOutcome](t, s, "execute_command", arguments{"id": id, "command": command})
		if got.ExitCode != 0 {
			t.Fatalf("%s: %+v", command, got)
		}
		return got.Stdout
	}
	first := run(`mkdir from && cd from && git init -q -b main && git config user.email a@example.org && git config user.name a &&
		echo 1 > f && git add f && git commit -qm one && git rev-parse HEAD && git checkout -q -b side && echo 2 > f && git commit -qam two && git checkout -q main`)
	if got := ok(t, s, "git_clone", arguments{"id": id, "url": "./from", "path": "to"}); got != "Cloned repository: ./from to to" {
		t.Errorf("got %q", got)
	}
	ok(t, s, "git_clone", arguments{"id": id, "url": "./from", "path": "-odd", "branch": "side"})
	ok(t, s, "git_clone", arguments{"id": id, "url": "./from", "path": "back", "branch": "side", "commitId": first})
	if got := run("cat to/f ./-odd/f back/f"); got != "1\n2\n1" {
		t.Errorf("got %q", got)
	}
	refused(t, s, "git_clone", arguments{"id": id, "url": "./none", "path": "x"}, "error (not_found): error cloning: git ended with exit code 128", "none", "next: see whether the address")
	refused(t, s, "git_clone", arguments{"id": id, "url": "./from", "path": "y", "commitId": "0000000000"}, "error checking out 0000000000")
	refused(t, s, "git_clone", arguments{"id": id, "url": "ext::sh -c id", "path": "y"}, "argument url")
	refused(t, s, "git_clone", arguments{"id": id, "url": "./from"}, "already exists", "next: see what git says; path names another directory")
	refused(t, s, "git_clone", arguments{"id": id, "url": "./from", "commitId": "--orphan"}, `argument commitId "--orphan" is not a valid commit id`)
	refused(t, s, "git_clone", arguments{"id": id, "url": "./from", "branch": "--bare"}, `argument branch "--bare" is not a valid branch name`)
	refused(t, s, "git_clone", arguments{"id": id, "url": "./from", "password": "s3cret"}, "argument url is not an HTTP address")
	refused(t, s, "git_clone", arguments{"id": id, "url": "https://example.org/a", "password": "a\nb"}, "argument password")
}

// What asks a server who it is speaks of itself to that server alone, and is in no
// record and no file.
func TestDaytonaClonesWithCredentials(t *testing.T) {
	t.Parallel()
	skiptest.WithoutGit(t)
	h := open(t)
	s, id := h.daytona()
	g := newGitHost(t)
	for _, args := range []arguments{
		{"url": g.url + "/app.git", "username": "u", "password": "s3cret"},
		{"url": strings.Replace(g.url, "http://", "http://u:s3cret@", 1) + "/app.git"},
	} {
		args["id"], args["path"] = id, fmt.Sprintf("app-%d", len(args))
		if got := ok(t, s, "git_clone", args); !strings.HasPrefix(got, "Cloned repository: "+g.url+"/app.git to app-") || strings.Contains(got, "s3cret") {
			t.Errorf("got %q", got)
		}
	}
	if got := read[daytonaOutcome](t, s, "execute_command", arguments{"id": id, "command": "cat app-*/f; grep -r 's[3]cret' . | wc -l"}); strings.Fields(got.Stdout)[0] != "hello" || !strings.HasSuffix(got.Stdout, "\n0") {
		t.Errorf("got %+v", got)
	}
	for ev := range h.events(id) {
		if strings.Contains(ev, "s3cret") {
			t.Errorf("the record has it: %s", ev)
		}
	}
	refused(t, s, "git_clone", arguments{"id": id, "url": g.url + "/app.git", "path": "no", "username": "u", "password": "wrong"}, "error cloning")
	before := g.told.Load()
	refused(t, s, "git_clone", arguments{"id": id, "url": g.url + "/elsewhere.git", "path": "no", "username": "u", "password": "s3cret"}, "error cloning")
	if g.leaked.Load() || g.told.Load() == before {
		t.Errorf("a redirect to another host got the password: %v", g.leaked.Load())
	}
}

func TestDaytonaPreview(t *testing.T) {
	t.Parallel()
	h := open(t)
	s, id := h.daytona()
	args := func(port any, check bool) arguments {
		return arguments{"id": id, "port": port, "description": "the app", "checkServer": check}
	}
	res := call(t, s, "preview_link", args(8123, false))
	if got, want := text(t, res), fmt.Sprintf("Preview link generated: http://8123-%s.example/?sandpit_token=token-%s-8123", id, id); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	wantParts(t, res.Content[1].(*sdk.TextContent).Text, "good until ", "/preview/"+id+"/8123/")
	refused(t, s, "preview_link", args(0, false), "argument port 0 is outside 1 to 65535")
	refused(t, s, "preview_link", args(80.5, false), "argument port 80.5 is not a whole number")
	refused(t, s, "preview_link", args(closedPort(t), true), "error (state): no server detected on port", "next: start it by execute_command")
}

// closedPort is one on which nothing listens.
func closedPort(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestASandboxOfOneProfileIsUsedThroughTheOthers(t *testing.T) {
	t.Parallel()
	h := open(t)
	daytona, id := h.daytona()
	orkestr := h.at("/mcp/orkestr", "t-alice", stateless)
	plain := h.alice()
	ok(t, daytona, "file_upload", arguments{"id": id, "filePath": "n", "content": "41\n", "encoding": "text", "overwrite": true})
	ok(t, orkestr, "run_shell", arguments{"sandbox_id": id, "command": "echo $(($(cat n)+1)) > n"})
	wantParts(t, ok(t, plain, "read_file", arguments{"sandbox": id, "path": "n"}), "\t42")
	ok(t, plain, "create_sandbox", arguments{"name": "app"})
	got := read[daytonaOutcome](t, daytona, "execute_command", arguments{"id": "app", "command": "echo mine"})
	if got.Stdout != "mine" {
		t.Errorf("got %+v", got)
	}
	ok(t, orkestr, "terminate_sandbox", arguments{"sandbox_id": "app"})
	refused(t, daytona, "execute_command", arguments{"id": "app", "command": "true"}, "error (not_found)", id)
	wantParts(t, ok(t, plain, "list_sandboxes", nil), id)
}
