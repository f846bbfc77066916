// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/access"
	"sandpit.dev/api/mcp"
	"sandpit.dev/engine"
	"sandpit.dev/engine/update"
	"sandpit.dev/internal/mcpbridge"
	"sandpit.dev/network/ask"
	"sandpit.dev/network/permit"
	"sandpit.dev/network/preset"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// allowForm is the answer that grants, as the form has it.
const allowForm = "allow for this sandbox"

// policies is an engine whose sandboxes have a policy, and no network.
type policies struct {
	*engine.Engine
	rules permit.Rules

	mu  sync.Mutex
	now map[sandbox.ID]sandbox.NetworkPolicy
}

func (p *policies) Get(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error) {
	s, err := p.Engine.Get(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	copied := *s
	p.mu.Lock()
	defer p.mu.Unlock()
	copied.Network = p.now[s.ID]
	return &copied, nil
}

func (p *policies) Update(ctx context.Context, c access.Caller, ref string, change update.Patch) (*sandbox.Sandbox, error) {
	s, err := p.Get(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	n, err := p.rules.Check(change.Network)
	if err == nil {
		n, err = p.rules.Resolve(n, func() (permit.Image, error) { return permit.Image{}, nil })
	}
	if err == nil && change.Bound != nil {
		err = change.Bound.Within(p.InForce(s.Network), n)
	}
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now[s.ID] = n
	return s, nil
}

func (p *policies) InForce(n sandbox.NetworkPolicy) sandbox.NetworkPolicy { return p.rules.Bounded(n) }

func (p *policies) Presets(context.Context, access.Caller, string) ([]permit.Preset, bool, error) {
	all, err := p.rules.List(nil)
	return all, true, err
}

// asking is a house whose operator lets clients ask their person. It has one sandbox, box.
type asking struct {
	*house
	policies *policies
	box      sandbox.ID
}

func (h *house) asking(t *testing.T, elicit bool, change func(*mcp.Options)) *asking {
	t.Helper()
	set, err := preset.New(preset.Options{Lists: map[string][]string{"lists": {"a.lists.test", "b.lists.test"}}})
	if err != nil {
		t.Fatal(err)
	}
	a := &asking{policies: &policies{Engine: h.engine, rules: permit.Rules{Presets: set, Elicit: elicit}, now: make(map[sandbox.ID]sandbox.NetworkPolicy)}}
	// Each has a sandbox of its own, since requests of an earlier test wait.
	s, _, err := h.engine.Create(t.Context(), callers["t-alice"], engine.CreateRequest{Key: "box-" + strings.ToLower(sandbox.NewProcessID())})
	if err != nil {
		t.Fatal(err)
	}
	a.box = s.ID
	own := *h
	own.t = t
	a.house = own.again(func(o *mcp.Options) {
		o.Services.Requests = ask.NewDesk(a.policies, func() permit.Rules { return a.policies.rules }, nil)
		if change != nil {
			change(o)
		}
	})
	return a
}

// reaches returns what the sandbox may reach.
func (a *asking) reaches() []string {
	a.policies.mu.Lock()
	defer a.policies.mu.Unlock()
	return a.policies.now[a.box].AllowDomains
}

// waits reports how many requests of the sandbox wait for a person.
func (a *asking) waits() int {
	a.t.Helper()
	all, err := ask.NewDesk(a.policies, func() permit.Rules { return a.policies.rules }, nil).NetworkRequests(a.t.Context(), callers["t-alice"], string(a.box))
	if err != nil {
		a.t.Fatal(err)
	}
	return len(all)
}

// nothing says that nothing was granted, and that one request waits.
func (a *asking) nothing() {
	a.t.Helper()
	if got := a.reaches(); got != nil {
		a.t.Errorf("granted: the sandbox reaches %q", got)
	}
	if n := a.waits(); n != 1 {
		a.t.Errorf("%d requests wait, want 1", n)
	}
	if err := a.store.View(a.t.Context(), func(tx store.Tx) error {
		all, _, err := tx.Events().List(store.EventQuery{Project: "default", Types: []sandbox.EventType{sandbox.EventNetworkGranted}})
		if slices.ContainsFunc(all, func(e *sandbox.Event) bool { return e.Sandbox == a.box }) {
			a.t.Error("there is an event of a grant")
		}
		return err
	}); err != nil {
		a.t.Fatal(err)
	}
}

// person is what a client does with a form.
type person func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error)

func says(action string, content map[string]any) person {
	return func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		return &sdk.ElicitResult{Action: action, Content: content}, nil
	}
}

func (p person) options() *sdk.ClientOptions { return &sdk.ClientOptions{ElicitationHandler: p} }

// A person decides in their client, over every transport and in both eras.
func TestAClientAsksItsPerson(t *testing.T) {
	t.Parallel()
	h := open(t)
	connect := func(t *testing.T, a *asking, transport sdk.Transport, version string, p person) *sdk.ClientSession {
		t.Helper()
		s, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, p.options()).Connect(t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.InitializeResult().ProtocolVersion; got != version {
			t.Errorf("speaks %s, want %s", got, version)
		}
		return s
	}
	http1 := func(version string) func(*testing.T, *asking, person) *sdk.ClientSession {
		return func(_ *testing.T, a *asking, p person) *sdk.ClientSession {
			return a.session("t-alice", version, p.options())
		}
	}
	stdio := func(version string) func(*testing.T, *asking, person) *sdk.ClientSession {
		return func(t *testing.T, a *asking, p person) *sdk.ClientSession {
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			ended := make(chan error, 1)
			go func() {
				err := mcpbridge.Run(context.WithoutCancel(t.Context()), inR, outW, mcpbridge.Options{URL: a.url, Token: "t-alice", HTTP: a.http})
				outW.Close()
				ended <- err
			}()
			s := connect(t, a, &sdk.IOTransport{Reader: outR, Writer: inW}, version, p)
			t.Cleanup(func() {
				_ = s.Close()
				if err := <-ended; err != nil {
					t.Error("the bridge:", err)
				}
			})
			return s
		}
	}
	for name, begin := range map[string]func(*testing.T, *asking, person) *sdk.ClientSession{
		"HTTPHandshake": http1(handshake), "HTTPStateless": http1(stateless), "StdioHandshake": stdio(handshake), "StdioStateless": stdio(stateless),
		"HTTPOfJune2025": http1("2025-06-18"),
		"SSE": func(t *testing.T, a *asking, p person) *sdk.ClientSession {
			s := connect(t, a, &sdk.SSEClientTransport{Endpoint: a.url, HTTPClient: &http.Client{Transport: bearer{"t-alice", a.http.Transport}}}, handshake, p)
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := h.asking(t, true, nil)
			shown := make(chan *sdk.ElicitParams, 1)
			answer := says("accept", map[string]any{"answer": allowForm})
			s := begin(t, a, func(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				shown <- r.Params
				return answer(ctx, r)
			})
			args := arguments{"sandbox": string(a.box), "allow": "lists, own.example", "reason": "to \"clone\"\n- evil.example \x1b[2J\u202e"}
			res := call(t, s, "request_network", args)
			wantParts(t, text(t, res), "granted by the user: sandbox box-", "may reach lists, own.example now")
			if got := structured[struct{ State string }](t, res); got.State != "granted" {
				t.Errorf("got %+v", got)
			}
			if got := a.reaches(); !slices.Equal(got, []string{"own.example", "a.lists.test", "b.lists.test"}) {
				t.Errorf("it reaches %q", got)
			}
			form := <-shown
			lines := strings.Split(form.Message, "\n")
			if !slices.Equal(lines[1:5], []string{
				"- own.example", "- a.lists.test (preset lists)", "- b.lists.test (preset lists)",
				`The agent's own words, which nobody checked: "to \"clone\"\n- evil.example \x1b[2J\u202e"`,
			}) || len(lines) != 6 || !strings.Contains(lines[0], "the sandbox box-") {
				t.Errorf("the form says\n%s", form.Message)
			}
			if schema := string(jsonOf(t, form.RequestedSchema)); !strings.Contains(schema, `"enum":["deny","allow for this sandbox"]`) || strings.Contains(schema, "default") {
				t.Errorf("the form takes %s", schema)
			}
			ev := a.lastEvent(string(a.box), sandbox.EventNetworkGranted)
			if ev == nil || ev.Actor != "alice" || ev.Via != "mcp" || !strings.Contains(ev.Detail, "elicitation") {
				t.Errorf("the event is %+v", ev)
			}
			// The sandbox reaches it already: no form is shown.
			wantParts(t, ok(t, s, "request_network", args), "already")
			// A person who says no is not asked again at once.
			answer = says("decline", nil)
			args["allow"] = "more.example"
			res = call(t, s, "request_network", args)
			wantParts(t, text(t, res), "denied by the user", "next: ")
			if got := structured[struct{ State string }](t, res); got.State != "denied" || a.waits() != 0 {
				t.Errorf("got %+v, and %d wait", got, a.waits())
			}
			<-shown
			wantParts(t, ok(t, s, "request_network", args), "not granted yet", "the user types: sandpit network grant ")
			if len(shown) != 0 || slices.Contains(a.reaches(), "more.example") {
				t.Errorf("asked again; it reaches %q", a.reaches())
			}
		})
	}
}

// What is no clear yes grants nothing, and the request waits for the line that a person types.
func TestNothingButAYesGrants(t *testing.T) {
	t.Parallel()
	h := open(t)
	for name, p := range map[string]person{
		"Cancel":            says("cancel", nil),
		"CancelWithContent": says("cancel", map[string]any{"answer": allowForm}),
		"AcceptOfNothing":   says("accept", nil),
		"AnotherAction":     says("approve", map[string]any{"answer": allowForm}),
		"AnotherAnswer":     says("accept", map[string]any{"answer": "allow"}),
		"AnotherField":      says("accept", map[string]any{"allow": true}),
		"Broken": func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return nil, errors.New("there is no person")
		},
	} {
		for _, version := range []string{handshake, stateless} {
			t.Run(name+version, func(t *testing.T) {
				a := h.asking(t, true, nil)
				s := a.session("t-alice", version, p.options())
				res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "request_network", Arguments: arguments{"sandbox": string(a.box), "allow": "own.example"}})
				switch {
				case err != nil && version == handshake:
					t.Error(err)
				case err == nil:
					wantParts(t, text(t, res), "not granted yet", "the user was shown a form by your client, and it was not answered", "the user types: sandpit network grant ")
				} // in the stateless era this client itself ends a call whose form it does not take
				a.nothing()
			})
		}
	}
}

// Where the operator or the client does not have it, a person types the line, as ever.
func TestWhereNobodyIsAsked(t *testing.T) {
	t.Parallel()
	h := open(t)
	yes := person(func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		t.Error("a form was shown")
		return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": allowForm}}, nil
	})
	byLink := yes.options()
	byLink.Capabilities = &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{URL: &sdk.URLElicitationCapabilities{}}}
	for name, c := range map[string]struct {
		elicit bool
		o      *sdk.ClientOptions
	}{"AsShipped": {false, yes.options()}, "AClientWithoutForms": {true, nil}, "AClientWithLinksAlone": {true, byLink}} {
		for _, version := range []string{handshake, stateless} {
			t.Run(name+version, func(t *testing.T) {
				a := h.asking(t, c.elicit, nil)
				got := ok(t, a.session("t-alice", version, c.o), "request_network", arguments{"sandbox": string(a.box), "allow": "own.example"})
				wantParts(t, got, "not granted yet", "the user types: sandpit network grant ")
				if strings.Contains(got, "form") {
					t.Errorf("it speaks of a form:\n%s", got)
				}
				a.nothing()
			})
		}
	}
}

const formMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}},`

// say calls request_network in the stateless era, as any program might.
func (a *asking) say(token, allow, more string) (state, body string) {
	a.t.Helper()
	_, body = a.post(token, "", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+formMeta+more+
		`"name":"request_network","arguments":{"sandbox":"`+string(a.box)+`","allow":"`+allow+`"}}}`,
		map[string]string{"Mcp-Protocol-Version": stateless, "Mcp-Method": "tools/call", "Mcp-Name": "request_network"})
	var m struct {
		Result struct{ ResultType, RequestState string }
	}
	data := body
	if _, after, ok := strings.Cut(body, "data: "); ok {
		data, _, _ = strings.Cut(after, "\n")
	}
	if err := json.Unmarshal([]byte(data), &m); err != nil {
		a.t.Fatalf("%v in %s", err, body)
	}
	if (m.Result.ResultType == "input_required") != (m.Result.RequestState != "") {
		a.t.Errorf("a state without a question, or a question without a state: %s", body)
	}
	return m.Result.RequestState, body
}

// said is what a client adds to a call about a form.
func said(state, response string) string {
	return fmt.Sprintf(`"requestState":%q,"inputResponses":{"network":%s},`, state, response)
}

// In the stateless era a client could send anything as the answer.
func TestAnswersThatAClientMakesUp(t *testing.T) {
	t.Parallel()
	h := open(t)
	const yes = `{"action":"accept","content":{"answer":"` + allowForm + `"}}`
	for name, c := range map[string]struct{ token, allow, response, state string }{
		"More":               {response: `{"action":"accept","content":{"answer":"` + allowForm + `","hosts":"evil.example"}}`},
		"AList":              {response: `{"action":"accept","content":{"answer":["` + allowForm + `"]}}`},
		"True":               {response: `{"action":"accept","content":{"answer":true}}`},
		"OtherCase":          {response: `{"action":"ACCEPT","content":{"answer":"` + allowForm + `"}}`},
		"NoContent":          {response: `{"action":"accept"}`},
		"NoAction":           {response: `{"action":"","content":{"answer":"` + allowForm + `"}}`},
		"Roots":              {response: `{"roots":[]}`},
		"AMadeUpState":       {response: yes, state: "AAAAAAAAAAAAAAAAAAAAAAAAAA"},
		"NoState":            {response: yes, state: "-"},
		"AnotherToken":       {response: yes, token: "t-bob"},
		"AnAdministrator":    {response: yes, token: "t-admin"},
		"AnotherHost":        {response: yes, allow: "evil.example"},
		"AnotherHostBesides": {response: yes, allow: "own.example,evil.example"},
		"APresetBesides":     {response: yes, allow: "own.example,lists"},
	} {
		t.Run(name, func(t *testing.T) {
			a := h.asking(t, true, nil)
			state, body := a.say("t-alice", "own.example", "")
			if state == "" || !strings.Contains(body, `"elicitation/create"`) {
				t.Fatalf("the form: %s", body)
			}
			switch c.state {
			case "":
				c.state = state
			case "-":
				c.state = ""
			}
			if c.token == "" {
				c.token = "t-alice"
			}
			if c.allow == "" {
				c.allow = "own.example"
			}
			if _, body = a.say(c.token, c.allow, said(c.state, c.response)); strings.Contains(body, "granted by") {
				t.Errorf("%s", body)
			}
			if got := a.reaches(); got != nil {
				t.Errorf("it reaches %q", got)
			}
			if a.waits() == 0 {
				t.Error("nothing waits")
			}
		})
	}

	t.Run("TheSameTwice", func(t *testing.T) {
		a := h.asking(t, true, nil)
		state, _ := a.say("t-alice", "own.example", "")
		if _, body := a.say("t-alice", "own.example", said(state, `{"action":"decline"}`)); !strings.Contains(body, "denied by the user") {
			t.Fatal(body)
		}
		if _, body := a.say("t-alice", "own.example", said(state, yes)); !strings.Contains(body, "not granted yet") {
			t.Error(body)
		}
		a.nothing() // it was asked for anew
	})

	t.Run("OneThatIsNoAnswer", func(t *testing.T) {
		a := h.asking(t, true, nil)
		first, _ := a.say("t-alice", "own.example", "")
		// A call without an answer is a new one: the form is shown again, and the first is good for nothing.
		second, body := a.say("t-alice", "own.example", `"requestState":"`+first+`","inputResponses":{"other":`+yes+`},`)
		if second == "" || second == first {
			t.Fatal(body)
		}
		if _, body := a.say("t-alice", "own.example", said(first, yes)); !strings.Contains(body, "not granted yet") {
			t.Error(body)
		}
		a.nothing()
		if _, body := a.say("t-alice", "own.example", said(second, yes)); !strings.Contains(body, "granted by the user") {
			t.Error(body)
		}
	})

	t.Run("OfARestartedServer", func(t *testing.T) {
		a := h.asking(t, true, nil)
		state, _ := a.say("t-alice", "own.example", "")
		next := *a
		next.house = a.again(func(o *mcp.Options) {
			o.Services.Requests = ask.NewDesk(a.policies, func() permit.Rules { return a.policies.rules }, nil)
		})
		if _, body := next.say("t-alice", "own.example", said(state, yes)); !strings.Contains(body, "not granted yet") {
			t.Error(body)
		}
		a.nothing()
	})
}

// handmade is a session of the handshake era whose client is written by hand.
type handmade struct {
	a      *asking
	header map[string]string
}

func (a *asking) handmade(token string) *handmade {
	a.t.Helper()
	resp, body := a.post(token, "", strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1), nil)
	id := resp.Header.Get("Mcp-Session-Id")
	if id == "" {
		a.t.Fatalf("initialize: %s, %s", resp.Status, body)
	}
	a.post(token, id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil)
	return &handmade{a, map[string]string{"Mcp-Session-Id": id, "Mcp-Protocol-Version": handshake}}
}

// asked calls request_network, and returns the id of the question that comes, the rest of the stream, and what breaks that.
func (w *handmade) asked() (id string, rest func() string, drop func()) {
	w.a.t.Helper()
	ctx, cancel := context.WithCancel(w.a.t.Context())
	req := w.a.house.asked(ctx, http.MethodPost, w.a.url, "t-alice",
		`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"request_network","arguments":{"sandbox":"`+string(w.a.box)+`","allow":"own.example"}}}`, w.header)
	resp, err := w.a.http.Do(req)
	if err != nil {
		cancel()
		w.a.t.Fatal(err)
	}
	drop = func() { cancel(); _ = resp.Body.Close() }
	w.a.t.Cleanup(drop)
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		if is && json.Unmarshal([]byte(data), &m) == nil && m.Method == "elicitation/create" {
			return string(m.ID), func() string {
				var all strings.Builder
				for lines.Scan() {
					all.WriteString(lines.Text() + "\n")
				}
				return all.String()
			}, drop
		}
	}
	w.a.t.Fatalf("no question came: %v", lines.Err())
	return "", nil, nil
}

// answer sends an answer to a question, as the client of a token, and returns the status.
func (w *handmade) answer(token, id, result string) int {
	w.a.t.Helper()
	resp, _ := w.a.post(token, "", `{"jsonrpc":"2.0","id":`+id+`,"result":`+result+`}`, w.header)
	return resp.StatusCode
}

func TestAnswersOfTheHandshakeEra(t *testing.T) {
	t.Parallel()
	h := open(t)
	const yes, no = `{"action":"accept","content":{"answer":"` + allowForm + `"}}`, `{"action":"decline"}`

	t.Run("OfAnotherTokenOrSession", func(t *testing.T) {
		a := h.asking(t, true, nil)
		alice, again, bob := a.handmade("t-alice"), a.handmade("t-alice"), a.handmade("t-bob")
		id, rest, _ := alice.asked()
		if status := alice.answer("t-bob", id, yes); status != http.StatusForbidden {
			t.Errorf("another token in the session: %d", status)
		}
		bob.answer("t-bob", id, yes)
		again.answer("t-alice", id, yes)
		alice.answer("t-alice", `"made up"`, yes)
		a.nothing()
		alice.answer("t-alice", id, yes)
		wantParts(t, rest(), "granted by the user")
	})

	t.Run("Twice", func(t *testing.T) {
		a := h.asking(t, true, nil)
		w := a.handmade("t-alice")
		id, rest, _ := w.asked()
		w.answer("t-alice", id, no)
		w.answer("t-alice", id, yes)
		wantParts(t, rest(), "denied by the user")
		w.answer("t-alice", id, yes)
		if got := a.reaches(); got != nil {
			t.Errorf("it reaches %q", got)
		}
	})

	t.Run("TooLate", func(t *testing.T) {
		a := h.asking(t, true, func(o *mcp.Options) { o.AskWait = time.Millisecond })
		w := a.handmade("t-alice")
		id, rest, _ := w.asked()
		wantParts(t, rest(), "not granted yet", "it was not answered", "the user types: sandpit network grant ")
		w.answer("t-alice", id, yes)
		a.nothing()
	})

	t.Run("AClientThatWent", func(t *testing.T) {
		ended := make(chan struct{})
		a := h.asking(t, true, func(o *mcp.Options) {
			o.AskWait, o.ReturnGrace = time.Hour, time.Millisecond
			o.Extend.Server = func(s *sdk.Server) {
				s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
					return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
						res, err := next(ctx, method, req)
						if method == "tools/call" {
							close(ended)
						}
						return res, err
					}
				})
			}
		})
		w := a.handmade("t-alice")
		id, _, drop := w.asked()
		drop()
		<-ended
		a.nothing()
		w.answer("t-alice", id, yes)
		a.nothing()
	})

	t.Run("AServerThatEnds", func(t *testing.T) {
		a := h.asking(t, true, func(o *mcp.Options) { o.AskWait = time.Hour })
		w := a.handmade("t-alice")
		_, rest, _ := w.asked()
		a.handler.Close()
		if got := rest(); strings.Contains(got, "granted by") {
			t.Error(got)
		}
		a.nothing()
	})
}
