// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	v1 "sandpit.dev/api/v1"
)

// documented returns the handler of a coat, and has each request that it serves, and each answer,
// held to the document: the status, the media type, the body or all events of a stream; and of what
// was done the parameters and the body, too. What a client may send beside the document is in
// undocumented.
func documented(t testing.TB, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, err := theContract()
		if err != nil {
			t.Errorf("the document cannot be read: %v", err)
			next.ServeHTTP(w, r)
			return
		}
		seen := &witness{ResponseWriter: w}
		asked := &copied{ReadCloser: r.Body}
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = asked
		}
		target := *r.URL // a handler may change it
		next.ServeHTTP(seen, r)
		if err := d.check(r, &target, asked, seen); err != nil {
			t.Errorf("%s %s is answered by %d, and the document says otherwise: %v", r.Method, clip(target.String()), seen.status, err)
		}
	})
}

// undocumented are requests that are served and not described, by the operation, and why. Each is a
// part of the error that the document would have for it.
var undocumented = map[string]map[string]string{
	"updateSandbox": {`has type "null", want "array"`: "null is as a field that is left out, for every field of a body, and no client needs it"},
}

func clip(s string) string { return s[:min(len(s), 300)] }

// maxCopy is how much of a body is kept for a look at it.
const maxCopy = 1 << 20

// copied keeps what is read of a body.
type copied struct {
	io.ReadCloser
	data []byte
	cut  bool
}

func (c *copied) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	room := min(n, maxCopy-len(c.data))
	c.data, c.cut = append(c.data, p[:room]...), c.cut || room < n
	return n, err
}

// witness keeps what is written of an answer. A stream is written to by several goroutines.
type witness struct {
	http.ResponseWriter
	status int
	taken  bool // the connection is not HTTP's any more

	mu   sync.Mutex
	data []byte
	cut  bool // it is not all that the handler meant to write
}

func (w *witness) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *witness) WriteHeader(status int) {
	if w.status == 0 && status >= 200 || status == http.StatusSwitchingProtocols {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *witness) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	room := min(n, maxCopy-len(w.data))
	w.data, w.cut = append(w.data, p[:room]...), w.cut || err != nil || room < len(p)
	return n, err
}

func (w *witness) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

func (w *witness) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.taken = true
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// contract is the document as a client has it.
type contract struct {
	routes *http.ServeMux
	calls  map[string]*call // by pattern
	defs   map[string]json.RawMessage

	mu    sync.Mutex
	ready map[string]*jsonschema.Resolved // by the text of a schema
}

// call is an operation of the document.
type call struct {
	ID          string `json:"operationId"`
	Parameters  []parameter
	RequestBody *struct {
		Content map[string]content
	} `json:"requestBody"`
	Responses map[string]struct {
		Content map[string]content
	}
}

type parameter struct {
	Name, In, Style string
	Segments        bool `json:"x-segments"`
	Schema          struct{ Type string }
}

// names reports whether a parameter of a query is p.
func (p parameter) names(name string) bool {
	return p.In == "query" && (p.Name == name || p.Style == "deepObject" && (strings.HasPrefix(name, p.Name+"[") || strings.HasPrefix(name, p.Name+".")))
}

type content struct {
	Schema json.RawMessage
	Events map[string]json.RawMessage `json:"x-events"`
}

// theContract returns the document that TestDocument holds the coat to.
var theContract = sync.OnceValues(func() (*contract, error) {
	text, err := os.ReadFile(goldenFile)
	if err != nil {
		return nil, err
	}
	var doc struct {
		Servers    []struct{ URL string }
		Paths      map[string]map[string]*call
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	c := &contract{routes: http.NewServeMux(), calls: make(map[string]*call), defs: doc.Components.Schemas, ready: make(map[string]*jsonschema.Resolved)}
	for path, calls := range doc.Paths {
		for method, o := range calls {
			for _, p := range o.Parameters {
				if p.Segments {
					path = strings.Replace(path, "{"+p.Name+"}", "{"+p.Name+"...}", 1)
				}
			}
			for _, s := range doc.Servers {
				pattern := strings.ToUpper(method) + " " + s.URL + path
				c.calls[pattern] = o
				c.routes.Handle(pattern, http.NotFoundHandler())
			}
		}
	}
	return c, nil
})

// check returns an error about a request that was served, and its answer, if the document has them otherwise.
func (d *contract) check(r *http.Request, target *url.URL, asked *copied, seen *witness) error {
	_, pattern := d.routes.Handler(&http.Request{Method: r.Method, Host: r.Host, URL: target})
	o := d.calls[pattern]
	answered := d.checkAnswer(r, o, seen)
	if o == nil || seen.status >= 300 && seen.status != http.StatusNotModified {
		return answered
	}
	if err := d.checkRequest(r, target, o, asked); err != nil {
		for part := range undocumented[o.ID] {
			if strings.Contains(err.Error(), part) {
				return answered
			}
		}
		return errors.Join(answered, fmt.Errorf("%s: the request: %w", o.ID, err))
	}
	return answered
}

func (d *contract) checkRequest(r *http.Request, target *url.URL, o *call, asked *copied) error {
	query, err := url.ParseQuery(target.RawQuery)
	if err != nil {
		return err
	}
	for name, values := range query {
		i := slices.IndexFunc(o.Parameters, func(p parameter) bool { return p.names(name) })
		if i < 0 {
			return fmt.Errorf("the parameter %s is not described", name)
		}
		for _, v := range values {
			switch o.Parameters[i].Schema.Type {
			case "integer":
				_, err = strconv.ParseInt(v, 10, 64)
			case "number":
				_, err = strconv.ParseFloat(v, 64)
			case "boolean":
				_, err = strconv.ParseBool(v)
			}
			if err != nil {
				return fmt.Errorf("the parameter %s: %w", name, err)
			}
		}
	}
	if o.RequestBody == nil {
		if len(asked.data) > 0 {
			return fmt.Errorf("it has a body of %d bytes, and none is described", len(asked.data))
		}
		return nil
	}
	if len(asked.data) == 0 || asked.cut {
		return nil
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if c, ok := o.RequestBody.Content["application/json"]; ok && (media == "" || media == "application/json") {
		return d.fits(c.Schema, asked.data)
	} else if ok || media == "multipart/form-data" && o.RequestBody.Content[media].Schema == nil {
		return fmt.Errorf("a body of the type %s is not described", media)
	}
	return nil // bytes, whatever type they claim to be of
}

func (d *contract) checkAnswer(r *http.Request, o *call, seen *witness) error {
	if seen.status == 0 && !seen.taken {
		return nil // nothing was answered: the connection was cut
	}
	if seen.taken {
		if o != nil {
			if _, ok := o.Responses["101"]; ok {
				return nil
			}
		}
		return errors.New("a WebSocket is not described")
	}
	media, _, _ := mime.ParseMediaType(seen.Header().Get("Content-Type"))
	if o != nil {
		if said, ok := o.Responses[strconv.Itoa(seen.status)]; ok {
			if len(said.Content) == 0 {
				if len(seen.data) > 0 {
					return fmt.Errorf("it has a body, and none is described: %s", clip(string(seen.data)))
				}
				return nil
			}
			c, ok := said.Content[media]
			if any, all := said.Content["*/*"]; all && !ok {
				c, ok, media = any, true, ""
			}
			if !ok {
				return fmt.Errorf("a body of the type %q is not described: %s", media, clip(string(seen.data)))
			}
			return d.checkBody(r, media, c, seen)
		}
	}
	if seen.status < 400 {
		return fmt.Errorf("the status is not described: %s", clip(string(seen.data)))
	}
	if media != v1.ProblemType {
		return fmt.Errorf("the error's type is %q: %s", media, clip(string(seen.data)))
	}
	return d.checkBody(r, "application/json", content{Schema: json.RawMessage(`{"$ref":"#/components/schemas/Problem"}`)}, seen)
}

// checkBody returns an error about what was answered, where it does not fit.
func (d *contract) checkBody(r *http.Request, media string, c content, seen *witness) error {
	if r.Method == http.MethodHead {
		return nil
	}
	var events []event
	switch {
	case media == "text/event-stream":
		events = serverSentEvents(seen.data)
	case media == v1.FramesType:
		events = framedEvents(seen.data)
	case media != "application/json" || seen.cut:
		return nil
	default:
		return d.fits(c.Schema, seen.data)
	}
	for _, e := range events {
		schema, ok := c.Events[e.name]
		if !ok {
			return fmt.Errorf("an event %q is not described: %s", e.name, clip(e.data))
		}
		if err := d.fits(schema, []byte(e.data)); err != nil {
			return fmt.Errorf("the event %q: %w", e.name, err)
		}
	}
	return nil
}

type event struct{ name, data string }

// serverSentEvents returns the events that are whole.
func serverSentEvents(text []byte) (all []event) {
	blocks := strings.Split(string(text), "\n\n")
	for _, block := range blocks[:len(blocks)-1] {
		var e event
		for line := range strings.SplitSeq(block, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			switch name {
			case "event":
				e.name = value
			case "data":
				e.data += value
			}
		}
		if e != (event{}) {
			all = append(all, e)
		}
	}
	return all
}

// framedEvents returns the events among frames.
func framedEvents(data []byte) (all []event) {
	for len(data) >= 4 {
		size := int(binary.BigEndian.Uint32(data))
		if data = data[4:]; size > len(data) {
			return all
		}
		if size > 0 && data[0] == 0 {
			var e v1.FrameEvent
			if err := json.Unmarshal(data[1:size], &e); err != nil {
				return append(all, event{name: err.Error()})
			}
			all = append(all, event{e.Event, string(e.Data)})
		}
		data = data[size:]
	}
	return all
}

// fits returns an error if text is not JSON that a schema of the document describes.
func (d *contract) fits(schema json.RawMessage, text []byte) error {
	s, err := d.resolve(schema)
	if err != nil {
		return fmt.Errorf("the schema cannot be read: %w", err)
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return fmt.Errorf("%w: %s", err, clip(string(text)))
	}
	if err := s.Validate(v); err != nil {
		return fmt.Errorf("%w: %s", err, clip(string(text)))
	}
	return nil
}

func (d *contract) resolve(schema json.RawMessage) (*jsonschema.Resolved, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.ready[string(schema)]; s != nil {
		return s, nil
	}
	needed := make(map[string]json.RawMessage)
	var add func(text string)
	add = func(text string) {
		for part := range strings.SplitSeq(text, `"#/components/schemas/`) {
			name, _, _ := strings.Cut(part, `"`)
			if def := d.defs[name]; def != nil && needed[name] == nil {
				needed[name] = def
				add(string(def))
			}
		}
	}
	add(string(schema))
	defs, err := json.Marshal(needed)
	if err != nil {
		return nil, err
	}
	text := `{"$defs":` + string(defs) + `,"allOf":[` + string(schema) + `]}`
	text = strings.ReplaceAll(text, "#/components/schemas/", "#/$defs/")
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return nil, err
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, err
	}
	d.ready[string(schema)] = resolved
	return resolved, nil
}

// TestTheContract shows that what differs from the document is found.
func TestTheContract(t *testing.T) {
	t.Parallel()
	d, err := theContract()
	must(t, err)
	const (
		sandboxes = "/v1/sandboxes"
		page      = `{"items":[],"next_cursor":null,"total":0,"page":1,"page_size":0,"status_counts":{}}`
		watch     = "/v1/sandboxes/a/watch?path=%2F"
		stream    = "text/event-stream"
		problem   = `{"type":"urn:sandpit:error:not_found","title":"Not Found","status":404,"detail":"no","code":"not_found","request_id":"a"}`
	)
	for _, c := range []struct {
		name, method, target, body string
		status                     int
		media, answer              string
		wrong                      string // a part of the error; "": none
	}{
		{"AnAnswer", "GET", "/v1/sandboxes", "", 200, "application/json", page, ""},
		{"OnTheOtherBase", "GET", "/api/v1/sandboxes", "", 200, "application/json", page, ""},
		{"AFieldIsMissing", "GET", sandboxes, "", 200, "application/json", `{"items":[]}`, "next_cursor"},
		{"AFieldIsOfAnotherType", "GET", sandboxes, "", 200, "application/json", strings.Replace(page, "[]", "{}", 1), "items"},
		{"NoJSON", "GET", sandboxes, "", 200, "application/json", `{`, "unexpected end"},
		{"AnotherType", "GET", sandboxes, "", 200, "text/html", `<p>`, "text/html"},
		{"AnotherStatus", "GET", sandboxes, "", 203, "application/json", `{}`, "status"},
		{"ARedirect", "GET", sandboxes, "", 307, "", "", "status"},
		{"AnError", "GET", sandboxes, "", 404, v1.ProblemType, problem, ""},
		{"AnErrorThatIsNoProblem", "GET", sandboxes, "", 404, v1.ProblemType, `{"error":"no"}`, "required"},
		{"AnErrorOfAnUnknownCode", "GET", sandboxes, "", 404, v1.ProblemType, strings.ReplaceAll(problem, "not_found", "odd"), "enum"},
		{"AnErrorOfAnotherType", "GET", "/v1/nothing", "", 404, "text/plain", `no`, "text/plain"},
		{"AnUnknownRoute", "GET", "/v1/nothing", "", 200, "application/json", `{}`, "status"},
		{"AParameter", "GET", sandboxes + "?limit=3&metadata[a]=b&metadata.c=d", "", 200, "application/json", page, ""},
		{"AnUnknownParameter", "GET", sandboxes + "?most=3", "", 200, "application/json", page, "most"},
		{"AParameterThatIsNoNumber", "GET", sandboxes + "?limit=x", "", 200, "application/json", page, "limit"},
		{"AnUnknownParameterThatIsRefused", "GET", sandboxes + "?most=3", "", 404, v1.ProblemType, problem, ""},
		{"ABodyWhereNoneIs", "GET", sandboxes, "{}", 200, "application/json", page, "none is described"},
		{"AnUnknownField", "POST", "/v1/volumes", `{"name":"a","odd":1}`, 201, "application/json", `{}`, "odd"},
		{"AnAnswerWithoutABodyHasOne", "DELETE", "/v1/volumes/a", "", 204, "", `{}`, "none is described"},
		{"AnEvent", "GET", watch, "", 200, stream, "event: watching\ndata: {\"path\":\"/\",\"recursive\":false}\n\n: alive\n\n", ""},
		{"AnUnknownEvent", "GET", watch, "", 200, stream, "event: odd\ndata: {}\n\n", `"odd"`},
		{"AnEventOfAnotherType", "GET", watch, "", 200, stream, "event: watching\ndata: {}\n\n", "watching"},
		{"AFrameOfAnotherType", "POST", "/v1/exec", "", 200, v1.FramesType, "\x00\x00\x00\x1b\x00" + `{"event":"exit","data":{}} `[:26], "exit"},
		{"AFileOfAnyType", "GET", "/v1/sandboxes/a/files/b/c.svg", "", 200, "image/svg+xml", "<svg/>", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest(c.method, c.target, nil)
			seen := &witness{ResponseWriter: httptest.NewRecorder(), status: c.status, data: []byte(c.answer)}
			seen.Header().Set("Content-Type", c.media)
			err := d.check(r, r.URL, &copied{data: []byte(c.body)}, seen)
			if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
				t.Errorf("got %v, want an error with %q", err, c.wrong)
			}
		})
	}
}
