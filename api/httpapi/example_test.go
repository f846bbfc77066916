// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// anybody admits every token.
type anybody struct{}

func (anybody) Admit(ctx context.Context, token string) (access.Caller, context.Context, func(), error) {
	return access.Caller{Project: token}, ctx, func() {}, nil
}

// Note is a type of the wire.
type Note struct {
	Name string `json:"name"`
	Text string `json:"text,omitempty"`
}

// Problem is how this wire speaks of errors.
type Problem struct {
	Detail string `json:"detail"`
}

// notes is a coat with two operations.
type notes map[string]Note

func (n notes) operations() []httpapi.Operation {
	return []httpapi.Operation{
		httpapi.Op("putNote", "POST /notes", "Write a note.", http.StatusCreated, n.put).Example(Note{Name: "a", Text: "b"}),
		httpapi.Op("getNote", "GET /notes/{name}", "Read a note.", http.StatusOK, n.get),
	}
}

func (n notes) put(_ context.Context, c *httpapi.Call, in *struct{ Body Note }) (Note, error) {
	if in.Body.Name == "" {
		return Note{}, fault.InvalidField("name", "is missing")
	}
	n[c.Caller.Project+"/"+in.Body.Name] = in.Body
	return in.Body, nil
}

type getNote struct {
	Name string `path:"name" doc:"the note's name"`
	Bare *bool  `query:"bare" doc:"without the text"`
}

func (n notes) get(_ context.Context, c *httpapi.Call, in *getNote) (Note, error) {
	note, ok := n[c.Caller.Project+"/"+in.Name]
	if !ok {
		return Note{}, fault.New(fault.NotFound, "there is no note %q", in.Name)
	}
	if in.Bare != nil && *in.Bare {
		note.Text = ""
	}
	return note, nil
}

// A coat is a table of operations and what a handler needs to serve them.
func Example() {
	g, err := guard.New(guard.Options{Tokens: anybody{}})
	if err != nil {
		panic(err)
	}
	ops := notes{}.operations()
	h, err := httpapi.New(httpapi.Options{
		Guard: g, Via: "notes", Bases: []string{"/v1"},
		Error: func(w http.ResponseWriter, r *http.Request, err error) {
			guard.ErrorAs(w, r, err, "application/json", func(p v1.Problem) any { return Problem{p.Detail} })
		},
	}, ops)
	if err != nil {
		panic(err)
	}
	defer h.Close()

	ask := func(method, path, body string) {
		r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer alice")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
	}
	ask("POST", "/v1/notes", `{"name":"a","text":"buy milk"}`)
	ask("GET", "/v1/notes/a?bare=true", "")
	ask("POST", "/v1/notes", `{"nam":"a","text":7}`)
	ask("GET", "/v1/notes/a?bare=maybe&limit=1", "")
	ask("GET", "/v1/notes/b", "")
	ask("DELETE", "/v1/notes/a", "")
	ask("GET", "/v1/note", "")

	document, err := httpapi.Document{
		Info: map[string]any{"title": "notes", "version": "1"}, Bases: []string{"/v1"}, Types: reflect.TypeFor[Note]().PkgPath(),
		Error: reflect.TypeFor[Problem](), ErrorMedia: "application/json",
	}.Make(ops)
	fmt.Println(strings.Contains(string(document), `"operationId": "putNote"`), err)
	// Output:
	// 201 {"name":"a","text":"buy milk"}
	// 200 {"name":"a"}
	// 422 {"detail":"nam is not a field of this request; did you mean name?; text is 7; it must be a text"}
	// 422 {"detail":"bare \"maybe\" is neither true nor false; limit is not a parameter of this route; there are bare"}
	// 404 {"detail":"there is no note \"b\""}
	// 405 {"detail":"DELETE /v1/notes/a is not served; the path has GET, HEAD"}
	// 404 {"detail":"nothing is served at /v1/note; did you mean /v1/notes?"}
	// true <nil>
}
