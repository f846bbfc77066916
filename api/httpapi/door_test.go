// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"sandpit.dev/access"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/guard/guardtest"
	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// badge is a coat of another wire than REST's: its tokens stand in a header of its own, in the query, or in the first
// message of a WebSocket, and its errors are otherwise.
type badge struct{}

type who struct {
	Actor   string   `json:"actor"`
	Query   string   `json:"query"`
	Headers []string `json:"headers"`
}

func (badge) operations() []httpapi.Operation {
	type query struct {
		Part *string `query:"part" doc:"anything"`
	}
	return []httpapi.Operation{
		httpapi.Op("who", "GET /who", "Who asks.", http.StatusOK, func(_ context.Context, c *httpapi.Call, _ *query) (who, error) {
			return who{Actor: c.Caller.Actor, Query: c.R.URL.RawQuery + " " + c.R.RequestURI, Headers: c.R.Header.Values("X-Badge")}, nil
		}),
	}
}

func (badge) door(narrow func(access.Caller) bool) guard.Door {
	return guard.Door{
		Via:         "badge",
		Credentials: []guard.Credential{guard.InHeader("x-badge"), guard.Bearer(), guard.InQuery("badge", narrow), guard.FirstMessage()},
		Error: func(w http.ResponseWriter, r *http.Request, err error) {
			guard.ErrorAs(w, r, err, "application/json", func(p v1.Problem) any { return map[string]any{"message": p.Detail, "statusCode": p.Status} })
		},
	}
}

// handler is the coat with a WebSocket beside its table, which says to whom it speaks.
func (b badge) handler(t *testing.T, g *guard.Guard, narrow func(access.Caller) bool) http.Handler {
	t.Helper()
	door := b.door(narrow)
	table, err := httpapi.New(httpapi.Options{Guard: g, Via: door.Via, Credentials: door.Credentials, Error: door.Error}, b.operations())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	mux := http.NewServeMux()
	mux.Handle("/", table)
	mux.Handle("GET /socket", g.Through(door, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
		if err != nil {
			return
		}
		defer conn.CloseNow()
		conn.SetReadLimit(guard.MaxFirstMessage)
		ctx := r.Context()
		caller, err := guard.Caller(ctx)
		if err != nil { // the token is yet to come
			_, first, err := conn.Read(ctx)
			if err != nil {
				return
			}
			var done func()
			if ctx, done, err = guard.Introduce(ctx, string(first)); err != nil {
				_ = conn.Close(websocket.StatusPolicyViolation, fault.As(err).Message)
				return
			}
			defer done()
			if caller, err = guard.Caller(ctx); err != nil {
				return
			}
		}
		_ = conn.Write(ctx, websocket.MessageText, []byte(caller.Actor+" by "+caller.Via))
		if _, _, err = guard.Introduce(ctx, guardtest.Token); err == nil {
			_ = conn.Write(ctx, websocket.MessageText, []byte("introduced twice"))
		}
		_ = conn.Close(websocket.StatusNormalClosure, "")
	})))
	return mux
}

func anyCaller(access.Caller) bool { return true }

func asHeader(r *http.Request, token string) { r.Header.Set("X-Badge", token) }

func asQuery(r *http.Request, token string) {
	r.URL.RawQuery = "part=a&badge=" + token
	r.RequestURI = r.URL.RequestURI()
}

func TestADoorOfItsOwn(t *testing.T) {
	guardtest.Run(t, guardtest.Coat{
		Via:     "badge",
		Handler: func(t *testing.T, g *guard.Guard) http.Handler { return badge{}.handler(t, g, anyCaller) },
		Method:  "GET", Path: "/who", Status: 200,
		Present: []func(*http.Request, string){asHeader, guardtest.Bearer, asQuery},
		Refusal: func(t *testing.T, status int, h http.Header, body []byte) {
			t.Helper()
			var e struct {
				Message    string
				StatusCode int
			}
			if err := json.Unmarshal(body, &e); err != nil || h.Get("Content-Type") != "application/json" || e.StatusCode != status || e.Message == "" {
				t.Errorf("got %s %s", h.Get("Content-Type"), body)
			}
		},
	})
}

// one knows the suite's token.
type one struct{}

func (one) Admit(ctx context.Context, token string) (access.Caller, context.Context, func(), error) {
	if token != guardtest.Token {
		return access.Caller{}, nil, nil, fault.New(fault.Unauthenticated, "the token is not valid")
	}
	return access.Caller{Project: "default", Actor: "one"}, ctx, func() {}, nil
}

func TestATokenIsTakenOutOfTheRequest(t *testing.T) {
	g, err := guard.New(guard.Options{Tokens: one{}})
	if err != nil {
		t.Fatal(err)
	}
	h := badge{}.handler(t, g, anyCaller)
	for _, present := range []func(*http.Request, string){asHeader, asQuery} {
		r := httptest.NewRequest("GET", "http://localhost/who?part=a", nil)
		present(r, guardtest.Token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 200 || strings.Contains(w.Body.String(), guardtest.Token) || !strings.Contains(w.Body.String(), "/who?part=a\"") {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	}
}

func TestAQueryHasNarrowTokensAlone(t *testing.T) {
	g, err := guard.New(guard.Options{Tokens: one{}})
	if err != nil {
		t.Fatal(err)
	}
	h := badge{}.handler(t, g, func(c access.Caller) bool { return c.Actor == "another" })
	var answers []string
	for _, token := range []string{guardtest.Token, "not-a-token"} {
		r := httptest.NewRequest("GET", "http://localhost/who", nil)
		asQuery(r, token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if answers = append(answers, w.Body.String()); w.Code != 401 {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	}
	if answers[0] != answers[1] {
		t.Errorf("an address tells whether a token is valid: %q", answers)
	}
}

func TestTheFirstMessageHasTheToken(t *testing.T) {
	g, err := guard.New(guard.Options{Tokens: one{}})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(badge{}.handler(t, g, anyCaller))
	defer srv.Close()
	dial := func(h http.Header) (*websocket.Conn, *http.Response, error) {
		return websocket.Dial(t.Context(), srv.URL+"/socket", &websocket.DialOptions{HTTPHeader: h})
	}
	for _, c := range []struct {
		name   string
		header http.Header
		first  string
		want   string // the first message; "": it is closed
	}{
		{"InTheMessage", nil, guardtest.Token, "one by badge"},
		{"InAHeader", http.Header{"X-Badge": {guardtest.Token}}, "", "one by badge"},
		{"OneThatIsNotValid", nil, "not-a-token", ""},
		{"OneThatIsLong", nil, strings.Repeat("a", 9<<10), ""},
		{"OneThatIsLongerThanIsRead", nil, strings.Repeat("a", 20<<10), ""},
		{"NoText", nil, "\x00\x01", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, _, err := dial(c.header)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.CloseNow()
			if c.first != "" {
				_ = conn.Write(t.Context(), websocket.MessageBinary, []byte(c.first)) // it may be cut off
			}
			_, got, err := conn.Read(t.Context())
			if string(got) != c.want || (err == nil) != (c.want != "") {
				t.Errorf("got %q %v, want %q", got, err, c.want)
			}
			if _, more, err := conn.Read(t.Context()); err == nil {
				t.Errorf("then came %q", more)
			}
		})
	}
	if _, resp, err := dial(http.Header{"X-Badge": {"not-a-token"}}); err == nil || resp.StatusCode != 401 {
		t.Errorf("a header with a token that is not valid: got %v", err)
	}
	if _, resp, err := dial(http.Header{"Origin": {"https://evil.example"}}); err == nil || resp.StatusCode != 403 {
		t.Errorf("a page of another site: got %v", err)
	}
	// What is no WebSocket cannot come without a token.
	resp, err := http.Get(srv.URL + "/socket")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != 401 || !strings.Contains(string(body), "statusCode") {
		t.Errorf("got %d %s", resp.StatusCode, body)
	}
}

func TestADoorThatLetsTooMuchInIsRefused(t *testing.T) {
	g, err := guard.New(guard.Options{Tokens: one{}})
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]guard.Door{
		"without a coat":              {},
		"any token in a query":        {Via: "a", Credentials: []guard.Credential{guard.InQuery("token", nil)}},
		"in a cookie":                 {Via: "a", Credentials: []guard.Credential{guard.InHeader("cookie")}},
		"in a header without a name":  {Via: "a", Credentials: []guard.Credential{guard.InHeader("")}},
		"twice":                       {Via: "a", Credentials: []guard.Credential{guard.Bearer(), guard.Bearer()}},
		"nowhere":                     {Via: "a", Credentials: []guard.Credential{{}}},
		"where the request's id is":   {Via: "a", Credentials: []guard.Credential{guard.InHeader("X-Request-ID")}},
		"where its project is chosen": {Via: "a", Credentials: []guard.Credential{guard.InHeader(guard.ProjectHeader)}},
	} {
		if d.Check() == nil {
			t.Errorf("%s: it is taken", name)
		}
		r := httptest.NewRequest("GET", "http://localhost/", nil)
		guardtest.Bearer(r, guardtest.Token)
		w := httptest.NewRecorder()
		g.Through(d, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Errorf("%s: somebody came in", name) })).ServeHTTP(w, r)
		if w.Code != 500 {
			t.Errorf("%s: got %d %s", name, w.Code, w.Body)
		}
	}
}
