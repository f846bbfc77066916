// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/api/rest"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/images"
	"sandpit.dev/engine/prewarm"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/sandbox"
)

// shelf is a keeper of one image, which sandboxes of two projects use.
type shelf struct {
	asked []any
	pool  images.PoolChange // the last one
}

func (s *shelf) Push(_ context.Context, _ access.Caller, name, reference string, tell func(sent, total int64)) (images.Pushed, error) {
	s.asked = append(s.asked, name, reference)
	tell(5, 10)
	if reference == "refused.example/x:1" {
		return images.Pushed{}, fault.New(fault.Denied, "the registry refuses")
	}
	tell(10, 10)
	return images.Pushed{Reference: reference, Digest: "sha256:" + strings.Repeat("b", 64), Size: 10, Sent: 10}, nil
}

func (*shelf) build() image.Build {
	return image.Build{Image: image.Image{Name: "python", Digest: "sha256:" + strings.Repeat("a", 64), SizeBytes: 4096}, Current: true}
}

func (*shelf) use() images.Use {
	return images.Use{
		Sandboxes: []*sandbox.Sandbox{
			{ID: "aaaaaaaaaaaaaaaa", Key: "mine", Project: access.DefaultProject, State: sandbox.Running},
			{ID: "bbbbbbbbbbbbbbbb", Key: "hers", Project: "other", State: sandbox.Stopped},
		},
		Snapshots: []*sandbox.Snapshot{{ID: "cccccccccccccccc", Name: "her-snapshot", Project: "other"}},
		Pools:     map[string]int{"recent": 2},
	}
}

func (s *shelf) Inspect(_ context.Context, _ access.Caller, name string) (images.Details, error) {
	s.asked = append(s.asked, name)
	return images.Details{
		Status: image.Status{Entry: image.Entry{Name: "python", Aliases: []string{"python-3.12"}}, State: image.Ready, Image: image.Image{Versions: map[string]string{"python": "3.11.2"}}},
		Builds: []images.Build{{Build: s.build(), Use: s.use()}},
	}, nil
}

func (*shelf) Counts(context.Context, access.Caller, []string) (map[string]int, error) {
	return map[string]int{"python": 2}, nil
}

func (s *shelf) Rebuild(_ context.Context, _ access.Caller, name string) (image.Status, error) {
	s.asked = append(s.asked, name)
	return image.Status{Entry: image.Entry{Name: "python"}, State: image.Ready}, nil
}

func (s *shelf) Delete(_ context.Context, _ access.Caller, d images.Deletion) (images.Deleted, error) {
	s.asked = append(s.asked, d)
	if !d.Force {
		return images.Deleted{}, fault.New(fault.Conflict, "it is in use")
	}
	return images.Deleted{Name: "python", Builds: []image.Image{s.build().Image}, Bytes: 4096, Use: s.use()}, nil
}

func (s *shelf) Prune(_ context.Context, _ access.Caller, p images.Pruning) (images.Pruned, error) {
	s.asked = append(s.asked, p)
	return images.Pruned{Builds: []image.Image{s.build().Image}, Bytes: 4096, Kept: 1}, nil
}

func (*shelf) Save(context.Context, access.Caller, string) (*images.Saving, error) {
	return nil, fault.New(fault.NotFound, "it is not here")
}

func (s *shelf) Command(_ context.Context, _ access.Caller, _ string, words []string) (images.Command, error) {
	if len(words) == 0 {
		words = []string{"of the image"}
	}
	return images.Command{Argv: append([]string{"echo", "entry"}, words...), Cwd: "/tmp"}, nil
}

func TestTheCommandOfAnImageIsRunWhereItIsAskedFor(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *rest.Options) { o.Services.Keeper = &shelf{} })
	web := "/v1/sandboxes/" + h.create().ID
	for body, want := range map[string]string{
		`{"image_command":true}`:                       "entry of the image",
		`{"image_command":true,"argv":["mine"]}`:       "entry mine",
		`{"image_command":false,"argv":["echo","no"]}`: `"stdout":"no`,
		`{"image_command":true,"command":"echo x"}`:    "image_command",
		`{"argv":["pwd"]}`:                             "/workspace",
	} {
		if got := h.do("POST", web+"/exec", json.RawMessage(body)); !strings.Contains(string(got.body), want) {
			t.Errorf("%s: %d %s, want %s", body, got.StatusCode, got.body, want)
		}
	}
	for path, body := range map[string]string{"/v1/exec": `{"image_command":true}`, web + "/shells/a/exec": `{"image_command":true}`} {
		if got := h.do("POST", path, json.RawMessage(body)); got.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(got.body), "image_command") {
			t.Errorf("%s: %d %s", path, got.StatusCode, got.body)
		}
	}
	if got := h.do("POST", web+"/processes", json.RawMessage(`{"image_command":true}`)); got.StatusCode != http.StatusCreated || !strings.Contains(string(got.body), `"cwd":"/tmp"`) {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
}

func (s *shelf) Log(_ context.Context, c access.Caller, name string, w io.Writer, follow bool, flush func() error) error {
	if err := c.Require(access.Admin); err != nil {
		return err
	}
	if name != "python" {
		return fault.New(fault.NotFound, "there is no log")
	}
	if _, err := fmt.Fprintf(w, "follow %v\n", follow); err != nil {
		return err
	}
	return flush()
}

func TestTheLogOfABuild(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *rest.Options) { o.Services.Keeper = &shelf{} })
	for path, says := range map[string]string{"/v1/images/python/log": "follow false\n", "/v1/images/python/log?follow=true": "follow true\n"} {
		got := h.do("GET", path, nil)
		if got.StatusCode != http.StatusOK || string(got.body) != says || got.Header.Get("Content-Type") != "text/plain; charset=utf-8" || got.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %s %v", path, got.StatusCode, got.body, got.Header)
		}
	}
	if got := h.do("GET", "/v1/images/none/log", nil); got.StatusCode != http.StatusNotFound {
		t.Errorf("none: %d %s", got.StatusCode, got.body)
	}
	if got := h.as("third", access.SandboxesRead).do("GET", "/v1/images/python/log", nil); got.StatusCode != http.StatusForbidden {
		t.Errorf("who may not build: %d %s", got.StatusCode, got.body)
	}
}

func (s *shelf) AllPools(context.Context, access.Caller) ([]prewarm.PoolInfo, error) { return nil, nil }

func (s *shelf) Pools(_ context.Context, _ access.Caller, name string) (string, []prewarm.PoolInfo, error) {
	s.asked = append(s.asked, name)
	return "python", []prewarm.PoolInfo{
		{Pool: prewarm.Pool{Name: "python", Image: "python", Template: "web@1", Runtime: "memory", Min: 1, Max: 3, Refill: 2}, Info: prewarm.Info{Ready: 1, Target: 1, Images: map[string]int{"python": 1}}},
		{Pool: prewarm.Pool{Name: "recent", Image: "node"}, Info: prewarm.Info{Ready: 3, Images: map[string]int{"python": 2, "node": 1}}, Recent: true},
	}, nil
}

func (s *shelf) ChangePool(ctx context.Context, c access.Caller, p images.PoolChange) (string, []prewarm.PoolInfo, error) {
	s.pool = p
	s.asked = append(s.asked, p)
	return s.Pools(ctx, c, p.Image)
}

func TestImagesAreAdministered(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	h := open(t, func(o *rest.Options) { o.Services.Keeper = s })
	other := h.as("third", access.SandboxesRead)

	got := h.do("GET", "/v1/images/mcpgateway%2Fsandbox-python:3.12", nil)
	if text := string(got.body); got.StatusCode != http.StatusOK || !strings.Contains(text, `"hers"`) || !strings.Contains(text, `"her-snapshot"`) || !strings.Contains(text, `"disk_bytes":4096`) || !strings.Contains(text, `"alias_notes"`) {
		t.Errorf("%d %s", got.StatusCode, text)
	}
	got = other.do("GET", "/v1/images/python", nil)
	if text := string(got.body); got.StatusCode != http.StatusOK || strings.Contains(text, "hers") || strings.Contains(text, "mine") || strings.Contains(text, "her-snapshot") ||
		!strings.Contains(text, `"sandbox_count":2`) || !strings.Contains(text, `"snapshot_count":1`) {
		t.Errorf("what another project sees: %d %s", got.StatusCode, text)
	}
	if got := h.do("GET", "/v1/images", nil); !strings.Contains(string(got.body), `"sandboxes":2`) {
		t.Errorf("%s", got.body)
	}
	if got := h.do("DELETE", "/v1/images/python", nil); got.StatusCode != http.StatusConflict {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	if got := h.do("DELETE", "/v1/images/python?digest=", nil); got.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("an empty digest: %d %s", got.StatusCode, got.body)
	}
	if got := h.do("DELETE", "/v1/images/python?digest=aaaaaaaaaaaa&force=true&dry_run=true", nil); got.StatusCode != http.StatusOK || !strings.Contains(string(got.body), `"dry_run":true`) {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	if got := h.do("POST", "/v1/images/prune", v1.PruneImages{Cache: true, DryRun: true}); got.StatusCode != http.StatusOK || !strings.Contains(string(got.body), `"freed_bytes":4096`) {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	if got := h.do("POST", "/v1/images/python/build", v1.BuildImage{Rebuild: true}); got.StatusCode != http.StatusOK {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	if got := h.do("POST", "/v1/images/python/build", nil); got.StatusCode != http.StatusOK {
		t.Errorf("a build without a body: %d %s", got.StatusCode, got.body)
	}
	want := []any{
		"mcpgateway/sandbox-python:3.12", "python", images.Deletion{Name: "python"},
		images.Deletion{Name: "python", Digest: "aaaaaaaaaaaa", Force: true, DryRun: true}, images.Pruning{Cache: true, DryRun: true}, "python",
	}
	if len(s.asked) != len(want) {
		t.Fatalf("asked were %v", s.asked)
	}
	for i := range want {
		if s.asked[i] != want[i] {
			t.Errorf("asked was %+v, want %+v", s.asked[i], want[i])
		}
	}
	if got := open(t).do("GET", "/v1/images/python", nil); got.StatusCode != http.StatusNotImplemented {
		t.Errorf("without a keeper: %d %s", got.StatusCode, got.body)
	}
}

func TestAPushIsToldAsItGoesOn(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *rest.Options) { o.Services.Keeper = &shelf{} })
	a := h.do("POST", "/v1/images/python/push", `{"reference": "registry.example/x:1"}`)
	text := string(a.body)
	for _, part := range []string{"event: progress", `"sent_bytes":10,"total_bytes":10`, "event: pushed", `"digest":"sha256:bbbb`} {
		if a.StatusCode != http.StatusOK || !strings.Contains(text, part) {
			t.Errorf("%s without %q: %s", a.Status, part, text)
		}
	}
	if a := h.do("POST", "/v1/images/python/push", `{"reference": "refused.example/x:1"}`); !strings.Contains(string(a.body), "event: error") || strings.Contains(string(a.body), "event: pushed") {
		t.Errorf("%s %s", a.Status, a.body)
	}
	if a := h.as("default", access.Admin).do("POST", "/v1/images/python/push", `{"reference": "registry.example/x:1"}`); a.StatusCode != http.StatusForbidden {
		t.Errorf("as a project's administrator: %s", a.Status)
	}
}
