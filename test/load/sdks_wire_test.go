// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// told are what a server has answered to clients of Orkestr's SDK and of the MCP Gateway's, and so has to keep.
type told struct {
	wire *wire
	most int // sandboxes

	mu     sync.Mutex
	boxes  map[string]*toldBox
	dead   map[string]bool // sandboxes that a delete was answered for
	calls  int             // that were answered
	many   int             // of those, too many at once
	looked int             // commands that were found again
	kinds  map[string]int
}

// toldBox is what was answered about one sandbox.
type toldBox struct {
	id, key  string
	leaving  bool              // a delete was asked for, and may have happened or not
	files    map[string]string // by path
	noFiles  []string          // that were deleted
	commands map[string]toldCommand
}

// toldCommand is one in the background that was begun.
type toldCommand struct {
	says string
	code int
}

func newTold(w *wire, most int) *told {
	return &told{wire: w, most: most, boxes: make(map[string]*toldBox), dead: make(map[string]bool), kinds: make(map[string]int)}
}

// did records what was answered.
func (a *told) did(fn func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fn()
}

// some returns a sandbox that no delete was asked for; nil where a new one is to be made.
func (a *told) some() *toldBox {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []*toldBox
	for _, id := range slices.Sorted(maps.Keys(a.boxes)) {
		if b := a.boxes[id]; !b.leaving {
			all = append(all, b)
		}
	}
	if len(all) == 0 || len(all) < a.most && rand.IntN(4) == 0 {
		return nil
	}
	return all[rand.IntN(len(all))]
}

// act does one random thing by one of the wires, and records what was answered. A server that is gone is broken.
func (a *told) act(ctx context.Context, name string) error {
	b := a.some()
	if b == nil {
		if rand.IntN(2) == 0 {
			return a.counted("create by orkestr", b, a.orkestrCreate(ctx))
		}
		return a.counted("create by gateway", b, a.gatewayCreate(ctx, name))
	}
	kinds := []struct {
		name string
		do   func(context.Context, *toldBox, string) error
	}{
		{"exec by orkestr", a.orkestrExec}, {"exec by gateway", a.gatewayExec}, {"files by orkestr", a.orkestrWrite}, {"files by gateway", a.gatewayWrite},
		{"a deleted file", a.removeFile}, {"background", a.begin}, {"background", a.begin}, {"delete", a.remove},
	}
	k := kinds[rand.IntN(len(kinds))]
	if k.name == "delete" && rand.IntN(4) > 0 {
		k = kinds[0]
	}
	return a.counted(k.name, b, k.do(ctx, b, name))
}

// counted counts an answer, and leaves errors out that are none of the server's. Each has to be one that the SDKs have a class for.
func (a *told) counted(kind string, b *toldBox, err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, gone := errors.AsType[broken](err); gone || errors.Is(err, context.Canceled) {
		return broken{err}
	}
	a.calls++
	r, refused := errors.AsType[*refusal](err)
	if refused && !classed(r) {
		return fmt.Errorf("%s: an error that the SDK has no class for: %w", kind, r)
	}
	switch {
	case err == nil:
		a.kinds[kind]++
		return nil
	case refused && (r.status == http.StatusTooManyRequests || strings.Contains(r.body, "fleet_full_retry")):
		a.many++
		return nil
	case b != nil && b.leaving && (!refused || r.status < 500):
		return nil
	}
	return fmt.Errorf("%s: %w", kind, err)
}

// classed reports whether an error has the form from which its SDK makes an exception of its own.
func classed(r *refusal) bool {
	var p struct {
		Detail string
		Error  struct{ Code, Message string }
	}
	err := json.Unmarshal([]byte(r.body), &p)
	if strings.Contains(r.what, gatewayBase) {
		return err == nil && p.Error.Code != "" && p.Error.Message != ""
	}
	return err == nil && p.Detail != ""
}

// missing reports whether err says of what is asked for that it is not there, in a form of the SDKs.
func missing(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.status == http.StatusNotFound && classed(r)
}

// Where the SDKs are told that the APIs are, with what they add.
const (
	orkestrBase = "/orkestr/v1/sandboxes"
	gatewayBase = "/gateway/api/v1/sandboxes"
)

func orkestrPath(id string) string { return orkestrBase + "/" + id }
func gatewayPath(id string) string { return gatewayBase + "/" + id }

// orkestrList returns the statuses of all sandboxes by their ids.
func (w *wire) orkestrList(ctx context.Context) (map[string]string, error) {
	all := make(map[string]string)
	for cursor := ""; ; {
		var page struct {
			Sandboxes []struct{ ID, Status string }
			Next      string `json:"next_cursor"`
		}
		query := "?limit=100"
		if cursor != "" {
			query += "&cursor=" + url.QueryEscape(cursor)
		}
		if _, err := w.call(ctx, "GET", orkestrBase+query, nil, &page); err != nil {
			return nil, err
		}
		for _, s := range page.Sandboxes {
			all[s.ID] = s.Status
		}
		if cursor = page.Next; cursor == "" {
			return all, nil
		}
	}
}

// gatewayList returns the keys of all sandboxes, "" for one without.
func (w *wire) gatewayList(ctx context.Context) (keys []string, err error) {
	var list struct {
		Items []struct {
			Key string `json:"session_key"`
		}
	}
	_, err = w.call(ctx, "GET", gatewayBase, nil, &list)
	for _, s := range list.Items {
		keys = append(keys, s.Key)
	}
	return keys, err
}

func (w *wire) orkestrRead(ctx context.Context, id, path string) (string, error) {
	var f struct{ Content []byte }
	_, err := w.call(ctx, "GET", orkestrPath(id)+"/files?path="+url.QueryEscape(path), nil, &f)
	return string(f.Content), err
}

func (w *wire) gatewayRead(ctx context.Context, id, path string) (string, error) {
	_, _, text, err := w.send(ctx, "GET", gatewayPath(id)+"/files/"+path, "", nil)
	return string(text), err
}

func (a *told) orkestrCreate(ctx context.Context) error {
	var b struct{ ID, Status string }
	_, err := a.wire.call(ctx, "POST", orkestrBase, object{"template": "python", "timeout_seconds": 86400, "network": "off"}, &b)
	if err == nil && b.Status != "running" {
		return fmt.Errorf("a create is answered with %+v", b)
	}
	if err == nil {
		a.created(b.ID, "")
	}
	return err
}

func (a *told) gatewayCreate(ctx context.Context, key string) error {
	_, err := a.wire.call(ctx, "POST", gatewayBase, object{"session_key": key, "memory_mb": 128, "cpu_cores": 0.5, "idle_timeout_seconds": 0}, nil)
	if err != nil {
		return err
	}
	// Its id is written otherwise by the other wire, which finds it by its key.
	var b struct{ ID string }
	_, err = a.wire.call(ctx, "GET", orkestrPath(key), nil, &b)
	if err == nil {
		a.created(b.ID, key)
	}
	return err
}

func (a *told) created(id, key string) {
	a.did(func() {
		a.boxes[id] = &toldBox{id: id, key: key, files: make(map[string]string), commands: make(map[string]toldCommand)}
	})
}

func (a *told) orkestrExec(ctx context.Context, b *toldBox, name string) error {
	return a.exec(ctx, orkestrPath(b.id), name)
}

func (a *told) gatewayExec(ctx context.Context, b *toldBox, name string) error {
	return a.exec(ctx, gatewayPath(b.id), name)
}

// exec runs a command by the path of either wire: the fields are the same.
func (a *told) exec(ctx context.Context, path, name string) error {
	var r struct {
		ExitCode       int `json:"exit_code"`
		Stdout, Stderr string
	}
	want := rand.IntN(100)
	_, err := a.wire.call(ctx, "POST", path+"/exec", object{"command": fmt.Sprintf("echo %s; echo err >&2; exit %d", name, want), "timeout_seconds": 60}, &r)
	if err == nil && (r.ExitCode != want || r.Stdout != name+"\n" || r.Stderr != "err\n") {
		return fmt.Errorf("%s: the command that ends with %d is answered with %+v", path, want, r)
	}
	return err
}

func (a *told) orkestrWrite(ctx context.Context, b *toldBox, name string) error {
	files := map[string]string{"dir/" + name: strings.Repeat(name, 1+rand.IntN(2000)), name: name}
	var list []object
	for path, text := range files {
		list = append(list, object{"path": path, "content": []byte(text), "mode": 0o644})
	}
	var r struct {
		Results []struct {
			Path  string
			Error *struct{ Code string }
		}
	}
	_, err := a.wire.call(ctx, "POST", orkestrPath(b.id)+"/files/batch", object{"files": list}, &r)
	if err != nil {
		return err
	}
	a.did(func() {
		for _, one := range r.Results {
			if one.Error == nil {
				b.files[one.Path] = files[one.Path]
			}
		}
	})
	return nil
}

func (a *told) gatewayWrite(ctx context.Context, b *toldBox, name string) error {
	text := strings.Repeat(name, 1+rand.IntN(2000))
	_, _, _, err := a.wire.send(ctx, "PUT", gatewayPath(b.id)+"/files/up-"+name, "application/octet-stream", strings.NewReader(text))
	if err == nil {
		a.did(func() { b.files["up-"+name] = text })
	}
	return err
}

func (a *told) removeFile(ctx context.Context, b *toldBox, name string) error {
	path := "gone-" + name
	_, _, _, err := a.wire.send(ctx, "PUT", gatewayPath(b.id)+"/files/"+path, "application/octet-stream", strings.NewReader(name))
	if err == nil {
		_, err = a.wire.call(ctx, "DELETE", orkestrPath(b.id)+"/files?path="+path, nil, nil)
	}
	if err == nil {
		a.did(func() { b.noFiles = append(b.noFiles, path) })
	}
	return err
}

// begin begins a command in the background, and leaves it.
func (a *told) begin(ctx context.Context, b *toldBox, name string) error {
	c := toldCommand{says: "begun " + name + "\nand on\n", code: rand.IntN(100)}
	var r struct{ ID string }
	_, err := a.wire.call(ctx, "POST", orkestrPath(b.id)+"/commands", object{"command": fmt.Sprintf("echo begun %s; sleep 0.%02d; echo and on >&2; exit %d", name, rand.IntN(50), c.code)}, &r)
	if err == nil {
		a.did(func() { b.commands[r.ID] = c })
	}
	return err
}

func (a *told) remove(ctx context.Context, b *toldBox, _ string) error {
	a.did(func() { b.leaving = true })
	path := orkestrPath(b.id)
	if rand.IntN(2) == 0 {
		path = gatewayPath(b.id)
	}
	_, err := a.wire.call(ctx, "DELETE", path, nil, nil)
	if missing(err) {
		return nil // another client's delete was first
	}
	if err == nil {
		a.did(func() { delete(a.boxes, b.id); a.dead[b.id] = true })
	}
	return err
}

// endsWell fails where a stream of frames does not end with that of an exit.
func endsWell(stream []byte) error {
	frames := bytes.Split(bytes.TrimSpace(stream), []byte("\n\n"))
	if last := frames[len(frames)-1]; !bytes.Contains(last, []byte(`"exec_exited"`)) {
		return fmt.Errorf("its stream ends with %.200q", last)
	}
	return nil
}
