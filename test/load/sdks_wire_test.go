// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
)

// sdkAnswers are what a server has answered to clients of Orkestr's SDK and of the MCP Gateway's.
type sdkAnswers struct {
	answers[*sdkBox]
	looked int // commands that were found again
}

// sdkBox is what was answered about one sandbox.
type sdkBox struct {
	replied
	key      string
	commands map[string]background
}

// background is a command in the background that was begun.
type background struct {
	says string
	code int
}

func newSDKBox(id, key string) *sdkBox {
	return &sdkBox{replied: newReplied(id), key: key, commands: make(map[string]background)}
}

func newSDKAnswers(w *wire, most int) *sdkAnswers {
	return &sdkAnswers{answers: newAnswers[*sdkBox](w, most)}
}

// act does one random thing by one of the wires, and records what was answered. A server that is gone is broken.
func (a *sdkAnswers) act(ctx context.Context, name string) error {
	b := a.some()
	if b == nil {
		if rand.IntN(2) == 0 {
			return a.counted("create by orkestr", nil, a.orkestrCreate(ctx))
		}
		return a.counted("create by gateway", nil, a.gatewayCreate(ctx, name))
	}
	kinds := []struct {
		name string
		do   func(context.Context, *sdkBox, string) error
	}{
		{"exec by orkestr", a.orkestrExec}, {"exec by gateway", a.gatewayExec}, {"files by orkestr", a.orkestrWrite}, {"files by gateway", a.gatewayWrite},
		{"a deleted file", a.removeFile}, {"background", a.begin}, {"background", a.begin}, {"delete", a.remove},
	}
	k := kinds[rand.IntN(len(kinds))]
	if k.name == "delete" && rand.IntN(4) > 0 {
		k = kinds[0]
	}
	return a.counted(k.name, &b.replied, k.do(ctx, b, name))
}

// counted counts an answer, and fails for an error that the SDKs have no class for.
func (a *sdkAnswers) counted(kind string, b *replied, err error) error {
	if r, refused := errors.AsType[*refusal](err); refused && !classed(r) {
		return fmt.Errorf("%s: an error that the SDK has no class for: %w", kind, r)
	}
	return a.answers.counted(kind, b, err)
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
	return ok && notFound(err) && classed(r)
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

func (a *sdkAnswers) orkestrCreate(ctx context.Context) error {
	var b struct{ ID, Status string }
	_, err := a.wire.call(ctx, "POST", orkestrBase, object{"template": "python", "timeout_seconds": 86400, "network": "off"}, &b)
	if err == nil && b.Status != "running" {
		return fmt.Errorf("a create is answered with %+v", b)
	}
	if err == nil {
		a.created(newSDKBox(b.ID, ""))
	}
	return err
}

func (a *sdkAnswers) gatewayCreate(ctx context.Context, key string) error {
	_, err := a.wire.call(ctx, "POST", gatewayBase, object{"session_key": key, "memory_mb": 128, "cpu_cores": 0.5, "idle_timeout_seconds": 0}, nil)
	if err != nil {
		return err
	}
	// Its id is written otherwise by the other wire, which finds it by its key.
	var b struct{ ID string }
	_, err = a.wire.call(ctx, "GET", orkestrPath(key), nil, &b)
	if err == nil {
		a.created(newSDKBox(b.ID, key))
	}
	return err
}

func (a *sdkAnswers) orkestrExec(ctx context.Context, b *sdkBox, name string) error {
	return a.exec(ctx, orkestrPath(b.id), name)
}

func (a *sdkAnswers) gatewayExec(ctx context.Context, b *sdkBox, name string) error {
	return a.exec(ctx, gatewayPath(b.id), name)
}

// exec runs a command by the path of either wire: the fields are the same.
func (a *sdkAnswers) exec(ctx context.Context, path, name string) error {
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

func (a *sdkAnswers) orkestrWrite(ctx context.Context, b *sdkBox, name string) error {
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

func (a *sdkAnswers) gatewayWrite(ctx context.Context, b *sdkBox, name string) error {
	text := strings.Repeat(name, 1+rand.IntN(2000))
	_, _, _, err := a.wire.send(ctx, "PUT", gatewayPath(b.id)+"/files/up-"+name, "application/octet-stream", strings.NewReader(text))
	if err == nil {
		a.did(func() { b.files["up-"+name] = text })
	}
	return err
}

func (a *sdkAnswers) removeFile(ctx context.Context, b *sdkBox, name string) error {
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
func (a *sdkAnswers) begin(ctx context.Context, b *sdkBox, name string) error {
	c := background{says: "begun " + name + "\nand on\n", code: rand.IntN(100)}
	var r struct{ ID string }
	_, err := a.wire.call(ctx, "POST", orkestrPath(b.id)+"/commands", object{"command": fmt.Sprintf("echo begun %s; sleep 0.%02d; echo and on >&2; exit %d", name, rand.IntN(50), c.code)}, &r)
	if err == nil {
		a.did(func() { b.commands[r.ID] = c })
	}
	return err
}

func (a *sdkAnswers) remove(ctx context.Context, b *sdkBox, _ string) error {
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
		a.deleted(b.id)
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
