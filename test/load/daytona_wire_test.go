// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"

	"github.com/coder/websocket"
)

// wire speaks to a server as clients do that are made for another service.
type wire struct {
	base  string // where they are told that the API is
	token string
	http  *http.Client
}

// wire returns one to the path base for so many clients.
func (h *host) wire(base string, clients int) *wire {
	w := &wire{base: "http://" + h.listen + base, token: h.token, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}}
	h.t.Cleanup(w.http.CloseIdleConnections)
	return w
}

// refusal is an answer that is an error.
type refusal struct {
	what   string
	status int
	body   string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%s: %d %.300s", r.what, r.status, r.body)
}

// broken is an answer that did not come, or not whole.
type broken struct{ error }

func (b broken) Unwrap() error { return b.error }

// send sends a request, and returns the status and the body of its answer, which is read to its end.
func (w *wire) send(ctx context.Context, method, path, media string, body io.Reader) (int, http.Header, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, w.base+path, body)
	if err != nil {
		return 0, nil, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+w.token)
	if media != "" {
		r.Header.Set("Content-Type", media)
	}
	resp, err := w.http.Do(r)
	if err != nil {
		return 0, nil, nil, broken{err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, nil, broken{err}
	}
	if resp.StatusCode > 299 {
		return resp.StatusCode, nil, nil, &refusal{method + " " + path, resp.StatusCode, string(text)}
	}
	return resp.StatusCode, resp.Header, text, nil
}

// call sends JSON, and reads the answer into out where that is not nil.
func (w *wire) call(ctx context.Context, method, path string, in, out any) (int, error) {
	var body io.Reader
	media := ""
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return 0, err
		}
		body, media = bytes.NewReader(b), "application/json"
	}
	status, _, text, err := w.send(ctx, method, path, media, body)
	if err != nil || out == nil {
		return status, err
	}
	if err := json.Unmarshal(text, out); err != nil {
		return status, fmt.Errorf("%s %s: %d %.200q: %w", method, path, status, text, err)
	}
	return status, nil
}

type object = map[string]any

// box is what is read of a sandbox.
type box struct{ ID, Name, State string }

func (w *wire) create(ctx context.Context, name string) (box, error) {
	var b box
	_, err := w.call(ctx, "POST", "/sandbox", object{"name": name, "cpu": 0.5, "memory": 0.125, "disk": 0.25, "networkBlockAll": true}, &b)
	return b, err
}

// list returns all sandboxes.
func (w *wire) list(ctx context.Context) (all []box, err error) {
	for cursor := ""; ; {
		var page struct {
			Items      []box
			NextCursor string
		}
		if _, err := w.call(ctx, "GET", "/sandbox?limit=100&cursor="+url.QueryEscape(cursor), nil, &page); err != nil {
			return nil, err
		}
		if all = append(all, page.Items...); page.NextCursor == "" {
			return all, nil
		}
		cursor = page.NextCursor
	}
}

// inside is the path of a sandbox's toolbox.
func inside(id string) string { return "/toolbox/" + id }

// execute runs a command, and returns its exit code and both of its outputs.
func (w *wire) execute(ctx context.Context, id, command string) (int, string, error) {
	var r struct {
		ExitCode int
		Result   string
	}
	_, err := w.call(ctx, "POST", inside(id)+"/process/execute", object{"command": command}, &r)
	return r.ExitCode, r.Result, err
}

// upload writes files, by their paths.
func (w *wire) upload(ctx context.Context, id string, files map[string]string) error {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	n := 0
	for path, text := range files {
		if err := form.WriteField(fmt.Sprintf("files[%d].path", n), path); err != nil {
			return err
		}
		part, err := form.CreateFormFile(fmt.Sprintf("files[%d].file", n), "x")
		if err == nil {
			_, err = io.WriteString(part, text)
		}
		if err != nil {
			return err
		}
		n++
	}
	if err := form.Close(); err != nil {
		return err
	}
	_, _, _, err := w.send(ctx, "POST", inside(id)+"/files/bulk-upload", form.FormDataContentType(), &body)
	return err
}

// download reads files, by their paths.
func (w *wire) download(ctx context.Context, id string, paths []string) (map[string]string, error) {
	in, err := json.Marshal(object{"paths": paths})
	if err != nil {
		return nil, err
	}
	_, h, text, err := w.send(ctx, "POST", inside(id)+"/files/bulk-download", "application/json", bytes.NewReader(in))
	if err != nil {
		return nil, err
	}
	_, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	files := make(map[string]string)
	for form := multipart.NewReader(bytes.NewReader(text), params["boundary"]); ; {
		p, err := form.NextRawPart()
		if err == io.EOF {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(p)
		if err != nil {
			return nil, err
		}
		_, named, err := mime.ParseMediaType(p.Header.Get("Content-Disposition"))
		if err != nil {
			return nil, err
		}
		if named["name"] != "file" {
			return nil, fmt.Errorf("%s: %s", named["filename"], b)
		}
		files[named["filename"]] = string(b)
	}
}

// ran is what is read of a command in a session.
type ran struct {
	CmdID    string
	Stdout   string
	ExitCode *int
}

// inSession runs a command in a session: to its end, or until it has begun.
func (w *wire) inSession(ctx context.Context, id, session, command string, async bool) (ran, error) {
	var r ran
	want := http.StatusOK
	if async {
		want = http.StatusAccepted
	}
	status, err := w.call(ctx, "POST", inside(id)+"/process/session/"+session+"/exec", object{"command": command, "runAsync": async}, &r)
	if err == nil && (status != want || r.CmdID == "" || (r.ExitCode == nil) != async) {
		err = fmt.Errorf("%s: a command in the session %s is answered with %d %+v", id, session, status, r)
	}
	return r, err
}

// dial opens a WebSocket.
func (w *wire) dial(ctx context.Context, path string) (*websocket.Conn, error) {
	conn, resp, err := websocket.Dial(ctx, w.base+path, &websocket.DialOptions{
		HTTPClient: w.http, HTTPHeader: http.Header{"Authorization": {"Bearer " + w.token}},
	})
	switch {
	case err == nil:
		conn.SetReadLimit(16 << 20)
		return conn, nil
	case resp == nil:
		return nil, broken{err}
	}
	body, rerr := io.ReadAll(resp.Body) // the first of it, of which Dial takes care
	return nil, &refusal{"the socket " + path, resp.StatusCode, fmt.Sprintf("%s (%v, %v)", body, err, rerr)}
}

// events opens the socket that tells of what happens, and returns it when it does.
func (w *wire) events(ctx context.Context) (*websocket.Conn, error) {
	conn, err := w.dial(ctx, "/socket.io/?EIO=4&transport=websocket")
	if err != nil {
		return nil, err
	}
	for _, step := range []struct{ say, hear string }{{"", "0{"}, {`40{"token":"` + w.token + `"}`, "40{"}} {
		if step.say != "" {
			err = conn.Write(ctx, websocket.MessageText, []byte(step.say))
		}
		var b []byte
		if err == nil {
			_, b, err = conn.Read(ctx)
		}
		if err != nil {
			_ = conn.CloseNow()
			return nil, broken{err}
		}
		if !strings.HasPrefix(string(b), step.hear) {
			_ = conn.CloseNow()
			return nil, fmt.Errorf("the event socket says %s", b)
		}
	}
	return conn, nil
}

// terminal joins a terminal.
func (w *wire) terminal(ctx context.Context, id, name string) (*websocket.Conn, error) {
	conn, err := w.dial(ctx, inside(id)+"/process/pty/"+name+"/connect")
	if err != nil {
		return nil, err
	}
	_, b, err := conn.Read(ctx)
	if err == nil && string(b) != `{"type":"control","status":"connected"}` {
		err = fmt.Errorf("%s: the terminal %s begins with %s", id, name, b)
	} else if err != nil {
		err = broken{err}
	}
	if err != nil {
		_ = conn.CloseNow()
		return nil, err
	}
	return conn, nil
}

// typed types a line at a terminal, and returns when it has shown a text.
func typed(ctx context.Context, conn *websocket.Conn, line, shows string) error {
	if err := conn.Write(ctx, websocket.MessageBinary, []byte(line+"\n")); err != nil {
		return broken{err}
	}
	var seen strings.Builder
	for !strings.Contains(seen.String(), shows) {
		_, b, err := conn.Read(ctx)
		if err != nil {
			return broken{fmt.Errorf("after %q: %w", seen.String(), err)}
		}
		seen.Write(b)
	}
	return nil
}
