// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/api/rest"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/image/dockerfile"
)

// workshop is a builder of Dockerfiles that sends events and builds nothing.
type workshop struct {
	asked   dockerfile.Request
	context string
}

func (w *workshop) BuildDockerfile(_ context.Context, c access.Caller, archive io.Reader, r dockerfile.Request, tell func(dockerfile.Event)) (image.Status, error) {
	if !c.May(access.Admin) {
		return image.Status{}, fault.New(fault.Denied, "it is for administrators")
	}
	text, err := io.ReadAll(archive)
	if err != nil {
		return image.Status{}, err
	}
	w.asked, w.context = r, string(text)
	if r.Target == "wrong" {
		return image.Status{}, fault.New(fault.Invalid, "line 3 of the Dockerfile: it is wrong")
	}
	tell(dockerfile.Event{Stage: "step 1 of 2", Text: "RUN make", Step: 1, Steps: 2, Line: 4, Kept: true})
	tell(dockerfile.Event{Output: []byte("made \xff\n")})
	if r.Target == "failing" {
		return image.Status{}, fault.New(fault.Unavailable, "line 4 of the Dockerfile: it failed")
	}
	return image.Status{Entry: image.Entry{Name: r.Name}, State: image.Ready}, nil
}

func TestTheBuildOfADockerfileIsStreamed(t *testing.T) {
	t.Parallel()
	w := &workshop{}
	h := open(t, func(o *rest.Options) { o.Services.Dockerfiles = w })
	got := h.do("POST", "/v1/images/build?name=app:1&dockerfile=d/F&no_cache=true&build_args=%7B%22A%22:%22b,c%22%7D", []byte("archive"))
	text := string(got.body)
	if got.StatusCode != http.StatusOK || !strings.HasPrefix(got.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("%d %s", got.StatusCode, text)
	}
	for _, want := range []string{"event: step\ndata: ", `"line":4`, `"kept":true`, "event: output\ndata: ", `"data_base64"`, "event: image\ndata: ", `"name":"app:1"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	if w.context != "archive" || w.asked.Name != "app:1" || w.asked.Dockerfile != "d/F" || !w.asked.Anew || w.asked.Args["A"] != "b,c" {
		t.Errorf("%+v", w)
	}
	// What is wrong before a step is an answer like others; a step's failure comes at the stream's end.
	if got := h.do("POST", "/v1/images/build?target=wrong", []byte("x")); got.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(got.body), "line 3") {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	if got := h.do("POST", "/v1/images/build?target=failing", []byte("x")); got.StatusCode != http.StatusOK || !strings.Contains(string(got.body), "event: error\ndata: ") || !strings.Contains(string(got.body), "line 4") {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	if got := h.do("POST", "/v1/images/build?build_args=x", []byte("x")); got.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	if got := h.as("reader", access.SandboxesRead).do("POST", "/v1/images/build", []byte("x")); got.StatusCode != http.StatusForbidden {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	if got := open(t).do("POST", "/v1/images/build", []byte("x")); got.StatusCode != http.StatusNotImplemented {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
}
