// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/access"
	"sandpit.dev/api/mcp"
	"sandpit.dev/api/mcp/profile/sandpit"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/service"
	"sandpit.dev/engine/ports"
	"sandpit.dev/engine/skills"
	"sandpit.dev/internal/checktest"
	"sandpit.dev/skill"
)

func resource(t *testing.T, s *sdk.ClientSession, uri string) (*sdk.ResourceContents, error) {
	t.Helper()
	res, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
	if err != nil {
		return nil, err
	}
	if len(res.Contents) != 1 {
		t.Fatalf("%s: got %d contents", uri, len(res.Contents))
	}
	return res.Contents[0], nil
}

func TestResources(t *testing.T) {
	t.Parallel()
	for _, version := range []string{handshake, stateless} {
		t.Run(version, func(t *testing.T) {
			h := open(t)
			s := h.session("t-alice", version, nil)
			box := structured[handle](t, call(t, s, "create_sandbox", arguments{"name": "box"}))
			in := "sandbox://" + box.ID
			ok(t, s, "write_file", arguments{"sandbox": "box", "path": "a b/é.txt", "content": "text\n"})
			ok(t, s, "write_file", arguments{"sandbox": "box", "path": "/artifacts/plot.png", "content": pixel, "encoding": "base64"})
			ok(t, s, "run_command", arguments{"sandbox": "box", "command": "head -c 1048576 /dev/zero | tr '\\0' x > most; head -c 1048577 /dev/zero | tr '\\0' x > more"})

			t.Run("AFileIsRead", func(t *testing.T) {
				for _, uri := range []string{in + "/workspace/a%20b/%C3%A9.txt", "sandbox://box/workspace/a%20b/%C3%A9.txt"} {
					got, err := resource(t, s, uri)
					if err != nil || got.Text != "text\n" || got.MIMEType != "text/plain" || got.URI != uri {
						t.Errorf("%s: got %+v, %v", uri, got, err)
					}
				}
				got, err := resource(t, s, in+"/artifacts/plot.png")
				if want, _ := base64.StdEncoding.DecodeString(pixel); err != nil {
					t.Error(err)
				} else {
					checktest.Equal(t, "string(got.Blob)", string(got.Blob), string(want))
					checktest.Equal(t, "MIMEType", got.MIMEType, "image/png")
				}
			})

			t.Run("AMegabyteIsTheMost", func(t *testing.T) {
				if got, err := resource(t, s, in+"/workspace/most"); err != nil || len(got.Text) != 1<<20 {
					t.Errorf("got %v", err)
				}
				_, err := resource(t, s, in+"/workspace/more")
				if err == nil || !strings.Contains(err.Error(), "1048577 bytes") || h.linked(err.Error()).Path != "/workspace/more" {
					t.Errorf("got %v", err)
				}
			})

			t.Run("WhatIsNotThereIsSaidSo", func(t *testing.T) {
				for _, uri := range []string{
					in + "/workspace/none", in + "/workspace", in + "/", in, "sandbox://nobox/workspace/x", "sandbox:///workspace/x",
					in + "/workspace/a%20b/%C3%A9.txt?x=1", "file:///etc/passwd", "skill://sandpit/none.md", "skill://sandpit/../SKILL.md",
					in + "/workspace/../../etc/none", "sandbox://" + strings.Repeat("x", 5000) + "/f", in + "/%zz",
				} {
					got, err := resource(t, s, uri)
					wire, is := errors.AsType[*jsonrpc.Error](err)
					if !is || wire.Code != jsonrpc.CodeInvalidParams && version == stateless {
						t.Errorf("%s: got %+v, %v; want the code of invalid params", clipped(uri), got, err)
					}
				}
			})

			t.Run("OnlyOnesOwn", func(t *testing.T) {
				if got, err := resource(t, h.session("t-stranger", version, nil), in+"/workspace/most"); err == nil {
					t.Errorf("a stranger read %d bytes", len(got.Text))
				}
				if _, err := resource(t, h.session("t-reader", version, nil), in+"/workspace/most"); err != nil {
					t.Errorf("a reader: %v", err)
				}
			})

			t.Run("TheListHasTheSkillAndWhatWasMade", func(t *testing.T) {
				uris := func(s *sdk.ClientSession) (out []string) {
					res, err := s.ListResources(t.Context(), nil)
					if err != nil {
						t.Fatal(err)
					}
					for _, r := range res.Resources {
						out = append(out, r.URI)
					}
					return out
				}
				got := uris(s)
				if !slices.Contains(got, "skill://sandpit/SKILL.md") || got[len(got)-1] != in+"/artifacts/plot.png" {
					t.Errorf("got %q", got)
				}
				if again := uris(s); !slices.Equal(got, again) {
					t.Errorf("the second time: %q, then %q", got, again)
				}
				for _, uri := range uris(h.session("t-stranger", version, nil)) {
					if strings.HasPrefix(uri, "sandbox:") {
						t.Errorf("a stranger is told of %s", uri)
					}
				}
				res, err := s.ListResourceTemplates(t.Context(), nil)
				if err != nil || len(res.ResourceTemplates) != 2 || res.ResourceTemplates[0].URITemplate != "sandbox://{id}/{+path}" {
					t.Errorf("templates: %+v, %v", res, err)
				}
			})
		})
	}
}

func clipped(s string) string { return s[:min(len(s), 80)] }

// recent is a source of artifacts of its own.
type recent struct{ err error }

func (r recent) Recent(_ context.Context, c access.Caller, most int) ([]sandpit.Artifact, error) {
	return []sandpit.Artifact{{URI: "sandbox://x/artifacts/" + c.Actor, Name: fmt.Sprint("of ", most), Size: 3}}, r.err
}

func TestAnotherSourceOfArtifacts(t *testing.T) {
	t.Parallel()
	for _, failed := range []error{nil, errors.New("it is broken")} {
		h := open(t)
		_, h.url = serveWith(t, mcp.Options{Services: service.Of(h.engine, h.inside, ports.New(h.engine), h.code, h.runs, deskOf(h.engine), skills.New(h.engine, skills.Options{})), Artifacts: recent{failed}})
		res, err := h.alice().ListResources(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		last := res.Resources[len(res.Resources)-1]
		if got := last.URI == "sandbox://x/artifacts/alice" && last.Name == "of 50" && last.Size == 3; got != (failed == nil) {
			t.Errorf("the source's error is %v, and the last resource %+v", failed, last)
		}
	}
}

func TestSkill(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.session("t-reader", stateless, nil)
	if _, there := s.InitializeResult().Capabilities.Extensions["io.modelcontextprotocol/skills"]; !there {
		t.Errorf("the extension is not told of: %+v", s.InitializeResult().Capabilities)
	}
	ask := func(method, params string) (out struct {
		Result struct {
			ResultType, CacheScope string
			TTLMs                  int
			Skills                 []struct {
				URI         string
				Frontmatter map[string]string
				Resources   []struct {
					URI, Digest string
					Size        int
				}
			}
			Skill json.RawMessage
		}
		Error *struct{ Code int }
	}) {
		t.Helper()
		body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}` + params + `}}`
		resp, got := h.post("t-reader", "", body, map[string]string{"Mcp-Protocol-Version": stateless, "Mcp-Method": method, "Accept": "application/json, text/event-stream"})
		if _, data, is := strings.Cut(got, "data: "); is {
			got = data
		}
		if err := json.NewDecoder(strings.NewReader(got)).Decode(&out); err != nil {
			t.Fatalf("%s: %s %s: %v", method, resp.Status, got, err)
		}
		if resp.StatusCode != http.StatusOK && out.Error == nil {
			t.Fatalf("%s: %s %s", method, resp.Status, got)
		}
		return out
	}
	list := ask("skills/list", "").Result
	if list.ResultType != "complete" || list.TTLMs <= 0 || list.CacheScope != "private" || len(list.Skills) != 1 {
		t.Fatalf("got %+v", list)
	}
	k := list.Skills[0]
	if k.URI != "skill://sandpit/SKILL.md" || k.Frontmatter["name"] != "sandpit" || k.Frontmatter["description"] == "" || len(k.Resources) != 5 || k.Resources[0].URI != k.URI {
		t.Errorf("got %+v", k)
	}
	for _, part := range k.Resources {
		c, err := resource(t, s, part.URI)
		if err != nil || len(c.Text) != part.Size || c.MIMEType != "text/markdown" || part.Digest != digest(c.Text) {
			t.Errorf("%s: %v, %d bytes of %d, %s", part.URI, err, len(c.Text), part.Size, part.Digest)
		}
	}
	if got := ask("skills/get", `,"uri":"skill://sandpit/SKILL.md"`).Result; got.Skill == nil || got.ResultType != "complete" || got.TTLMs <= 0 {
		t.Errorf("got %+v", got)
	}
	if got := ask("skills/get", `,"uri":"skill://other/SKILL.md"`); got.Error == nil || got.Error.Code != jsonrpc.CodeInvalidParams {
		t.Errorf("another skill: %+v", got)
	}
	if got := ask("skills/list", `,"cursor":"x"`); got.Error == nil || got.Error.Code != jsonrpc.CodeInvalidParams {
		t.Errorf("a cursor: %+v", got)
	}
}

func TestSkillsOfTheProjectAreResources(t *testing.T) {
	t.Parallel()
	h := open(t)
	kept := skills.New(h.engine, skills.Options{})
	caller := access.Caller{Project: "default", Actor: "alice", Via: "test", Scopes: []access.Scope{access.SandboxesWrite, access.SandboxesRead}}
	for _, name := range []string{"pdf", "sandpit"} {
		text := "---\nname: " + name + "\ndescription: reads\nallowed-tools: Read\n---\nhow"
		if _, _, err := kept.AddSkill(t.Context(), caller, []byte(text), skill.Manual); err != nil {
			t.Fatal(err)
		}
	}
	s := h.alice()
	res, err := s.ListResources(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, r := range res.Resources {
		c, err := resource(t, s, r.URI)
		if strings.HasPrefix(r.URI, "skill://") && r.Name == "pdf" && r.URI == "skill://pdf/SKILL.md" {
			found++
			if err != nil || !strings.HasSuffix(c.Text, "how") || c.MIMEType != "text/markdown" {
				t.Errorf("%s: got %+v, %v", r.URI, c, err)
			}
		}
		if r.Name == "sandpit" && r.Description == "reads" {
			found++
			if r.URI == "skill://sandpit/SKILL.md" || err != nil || !strings.HasSuffix(c.Text, "how") {
				t.Errorf("the project's own: %s, %+v, %v", r.URI, c, err)
			}
		}
	}
	if found != 2 {
		t.Errorf("%d of 2 skills are listed in %+v", found, res.Resources)
	}
	for _, uri := range []string{"skill://none/SKILL.md", "skill://pdf/none", "skill://pdf/../x", "skill://pdf/SKILL.md?x=1", "skill://u@pdf/SKILL.md", "skill://pdf/"} {
		if c, err := resource(t, s, uri); err == nil {
			t.Errorf("%s: got %+v", uri, c)
		}
	}
	if c, err := resource(t, h.session("t-stranger", handshake, nil), "skill://pdf/SKILL.md"); err == nil {
		t.Errorf("another project reads %+v", c)
	}
	got := call(t, s, "create_sandbox", arguments{"name": "lab", "skills": "pdf"})
	if got.IsError {
		t.Fatalf("got %+v", got)
	}
	out := call(t, s, "read_file", arguments{"sandbox": "lab", "path": "skills/pdf/SKILL.md"})
	if text := out.Content[0].(*sdk.TextContent).Text; !strings.Contains(text, "name: pdf") {
		t.Errorf("got %s", text)
	}
	if got := call(t, s, "create_sandbox", arguments{"name": "none", "skills": "no-such"}); !got.IsError {
		t.Errorf("a skill that is not there: %+v", got)
	}
	m := openWith(t, toolset.GroupManage, toolset.GroupInspect)
	got = call(t, m.alice(), "install_skills", arguments{"sandbox": "", "skills": "pdf"})
	if !got.IsError {
		t.Errorf("an empty name: %+v", got)
	}
	got = call(t, m.alice(), "install_skills", arguments{"skills": "pdf"})
	if text := got.Content[0].(*sdk.TextContent).Text; got.IsError || !strings.Contains(text, `there is no skill "pdf"`) {
		t.Errorf("got %s", text)
	}
	if got = call(t, m.alice(), "list_skills", arguments{}); got.IsError {
		t.Errorf("got %+v", got)
	}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// TestTheSkillSpeaksOfWhatThereIs finds every word of it that looks like a tool, or
// like a part of the skill.
func TestTheSkillSpeaksOfWhatThereIs(t *testing.T) {
	t.Parallel()
	h := openWith(t, toolset.Groups()...)
	s := h.alice()
	known := append(toolNames(listed(t, s)), "node_modules")
	for _, tool := range listed(t, s).Tools {
		schema, err := json.Marshal(tool.InputSchema)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`"([a-z_]+)":\{`).FindAllStringSubmatch(string(schema), -1) {
			known = append(known, m[1])
		}
	}
	res, err := s.ListResources(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	texts := h.alice().InitializeResult().Instructions
	for _, r := range res.Resources {
		known = append(known, strings.TrimPrefix(r.URI, "skill://sandpit/"))
		c, err := resource(t, s, r.URI)
		if err != nil {
			t.Fatal(err)
		}
		texts += c.Text
	}
	for _, m := range regexp.MustCompile("`([a-z]+_[a-z_]+|references/[^`]*)`").FindAllStringSubmatch(texts, -1) {
		if !slices.Contains(known, m[1]) {
			t.Errorf("it speaks of %s, which is not there", m[1])
		}
	}
}

func TestPrompts(t *testing.T) {
	t.Parallel()
	for _, version := range []string{handshake, stateless} {
		t.Run(version, func(t *testing.T) {
			s := open(t).session("t-reader", version, nil)
			res, err := s.ListPrompts(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, p := range res.Prompts {
				names = append(names, p.Name)
			}
			if want := []string{"analyse_data", "reproduce_bug", "test_repository"}; !slices.Equal(names, want) {
				t.Errorf("got %v, want %v", names, want)
			}
			get := func(name string, args map[string]string) (string, error) {
				res, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: name, Arguments: args})
				if err != nil {
					return "", err
				}
				return res.Messages[0].Content.(*sdk.TextContent).Text, nil
			}
			for name, arg := range map[string]string{"test_repository": "repository", "analyse_data": "path", "reproduce_bug": "description"} {
				got, err := get(name, map[string]string{arg: "the given one", "sandbox": "box"})
				if err != nil {
					t.Fatal(err)
				}
				wantParts(t, got, "the given one", `the sandbox "box"`)
				if got, err := get(name, map[string]string{arg: "x"}); err != nil || !strings.Contains(got, "the default sandbox") {
					t.Errorf("%s without a sandbox: %q, %v", name, got, err)
				}
				if _, err := get(name, nil); err == nil || !strings.Contains(err.Error(), "needs the argument "+arg) {
					t.Errorf("%s without %s: %v", name, arg, err)
				}
				if _, err := get(name, map[string]string{arg: strings.Repeat("x", 16<<10+1)}); err == nil || !strings.Contains(err.Error(), "16385 bytes") {
					t.Errorf("%s with too much: %v", name, err)
				}
			}
		})
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.alice()
	for _, name := range []string{"project-a", "project-b", "other"} {
		ok(t, s, "create_sandbox", arguments{"name": name})
	}
	ask := func(s *sdk.ClientSession, ref *sdk.CompleteReference, arg, value string) []string {
		t.Helper()
		res, err := s.Complete(t.Context(), &sdk.CompleteParams{Ref: ref, Argument: sdk.CompleteParamsArgument{Name: arg, Value: value}})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(res.Completion.Values)
		return res.Completion.Values
	}
	file := &sdk.CompleteReference{Type: "ref/resource", URI: "sandbox://{id}/{+path}"}
	tests := &sdk.CompleteReference{Type: "ref/prompt", Name: "test_repository"}
	both := []string{"project-a", "project-b"}
	if got := ask(s, file, "id", "proj"); !slices.Equal(got, both) {
		t.Errorf("of a resource: got %v", got)
	}
	if got := ask(s, tests, "sandbox", "proj"); !slices.Equal(got, both) {
		t.Errorf("of a prompt: got %v", got)
	}
	if got := ask(s, tests, "repository", "proj"); len(got) != 0 {
		t.Errorf("of another argument: got %v", got)
	}
	if got := ask(h.session("t-stranger", handshake, nil), tests, "sandbox", ""); len(got) != 0 {
		t.Errorf("a stranger is told of %v", got)
	}
}
