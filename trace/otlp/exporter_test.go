// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"sandpit.dev/trace"
)

// schema is what OTLP sends of traces: of opentelemetry-proto's files the messages and fields that are used.
const schema = `
name: "trace.proto" package: "otlp" syntax: "proto3"
message_type { name: "Request" field { name: "resource_spans" number: 1 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".otlp.ResourceSpans" } }
message_type { name: "ResourceSpans"
  field { name: "resource" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".otlp.Resource" }
  field { name: "scope_spans" number: 2 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".otlp.ScopeSpans" } }
message_type { name: "Resource" field { name: "attributes" number: 1 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".otlp.KeyValue" } }
message_type { name: "ScopeSpans"
  field { name: "scope" number: 1 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".otlp.Scope" }
  field { name: "spans" number: 2 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".otlp.Span" } }
message_type { name: "Scope"
  field { name: "name" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING } field { name: "version" number: 2 label: LABEL_OPTIONAL type: TYPE_STRING } }
message_type { name: "Span"
  field { name: "trace_id" number: 1 label: LABEL_OPTIONAL type: TYPE_BYTES } field { name: "span_id" number: 2 label: LABEL_OPTIONAL type: TYPE_BYTES }
  field { name: "trace_state" number: 3 label: LABEL_OPTIONAL type: TYPE_STRING } field { name: "parent_span_id" number: 4 label: LABEL_OPTIONAL type: TYPE_BYTES }
  field { name: "name" number: 5 label: LABEL_OPTIONAL type: TYPE_STRING } field { name: "kind" number: 6 label: LABEL_OPTIONAL type: TYPE_ENUM type_name: ".otlp.Kind" }
  field { name: "start_time_unix_nano" number: 7 label: LABEL_OPTIONAL type: TYPE_FIXED64 } field { name: "end_time_unix_nano" number: 8 label: LABEL_OPTIONAL type: TYPE_FIXED64 }
  field { name: "attributes" number: 9 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".otlp.KeyValue" }
  field { name: "events" number: 11 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".otlp.Event" }
  field { name: "status" number: 15 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".otlp.Status" } }
message_type { name: "Event"
  field { name: "time_unix_nano" number: 1 label: LABEL_OPTIONAL type: TYPE_FIXED64 } field { name: "name" number: 2 label: LABEL_OPTIONAL type: TYPE_STRING }
  field { name: "attributes" number: 3 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".otlp.KeyValue" } }
message_type { name: "Status" field { name: "message" number: 2 label: LABEL_OPTIONAL type: TYPE_STRING } field { name: "code" number: 3 label: LABEL_OPTIONAL type: TYPE_ENUM type_name: ".otlp.Code" } }
message_type { name: "KeyValue"
  field { name: "key" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING } field { name: "value" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".otlp.AnyValue" } }
message_type { name: "AnyValue" oneof_decl { name: "value" }
  field { name: "string_value" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING oneof_index: 0 } field { name: "bool_value" number: 2 label: LABEL_OPTIONAL type: TYPE_BOOL oneof_index: 0 }
  field { name: "int_value" number: 3 label: LABEL_OPTIONAL type: TYPE_INT64 oneof_index: 0 } field { name: "double_value" number: 4 label: LABEL_OPTIONAL type: TYPE_DOUBLE oneof_index: 0 } }
enum_type { name: "Kind" value { name: "SPAN_KIND_UNSPECIFIED" number: 0 } value { name: "SPAN_KIND_INTERNAL" number: 1 } value { name: "SPAN_KIND_SERVER" number: 2 } }
enum_type { name: "Code" value { name: "STATUS_CODE_UNSET" number: 0 } value { name: "STATUS_CODE_OK" number: 1 } value { name: "STATUS_CODE_ERROR" number: 2 } }
`

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// decoder reads requests by the schema, and refuses what is not in it.
func decoder(t *testing.T) func([]byte) (string, error) {
	t.Helper()
	file := new(descriptorpb.FileDescriptorProto)
	must(t, prototext.Unmarshal([]byte(schema), file))
	desc, err := protodesc.NewFile(file, nil)
	must(t, err)
	return func(b []byte) (string, error) {
		m := dynamicpb.NewMessage(desc.Messages().ByName("Request"))
		if err := proto.Unmarshal(b, m); err != nil {
			return "", err
		}
		var unknown error
		strange(m, &unknown)
		if unknown != nil {
			return "", unknown
		}
		text, err := protojson.Marshal(m)
		return string(text), err
	}
}

// strange looks for fields that the schema does not have.
func strange(m protoreflect.Message, found *error) {
	if len(m.GetUnknown()) > 0 {
		*found = fmt.Errorf("%s has unknown fields: %x", m.Descriptor().Name(), m.GetUnknown())
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Kind() != protoreflect.MessageKind:
		case f.IsList():
			for i := range v.List().Len() {
				strange(v.List().Get(i).Message(), found)
			}
		default:
			strange(v.Message(), found)
		}
		return true
	})
}

func TestSpansComeAsOTLPHasThem(t *testing.T) {
	decode := decoder(t)
	got := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		text, err := decode(body)
		if err != nil {
			t.Error(err)
		}
		got <- fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.Header.Get("Content-Type"), " ", r.Header.Get("X-Key"), "\n", text)
	}))
	defer server.Close()
	e := New(Options{
		URL: server.URL + "/v1/traces", Headers: map[string]string{"X-Key": "k"}, Delay: time.Millisecond, Version: "v1",
		Resource: []trace.Attribute{{Key: "service.name", Value: "sandpit"}},
	})
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error)
	go func() { over <- e.Run(ctx) }()
	at := time.Unix(1_700_000_000, 123_456_789)
	e.Export(&trace.Data{
		Trace: trace.TraceID{15: 1}, ID: trace.SpanID{7: 2}, Parent: trace.SpanID{7: 3}, State: "v=1", Name: "GET /x", Kind: trace.Server, Begin: at, End: at.Add(time.Second), Failed: true,
		Attributes: []trace.Attribute{{Key: "s", Value: "é"}, {Key: "empty", Value: ""}, {Key: "n", Value: int64(-5)}, {Key: "b", Value: true}, {Key: "f", Value: 1.5}},
		Events:     []trace.Event{{Name: "happened", At: at, Attributes: []trace.Attribute{{Key: "k", Value: "v"}}}},
	})
	head, text, _ := strings.Cut(<-got, "\n")
	cancel()
	must(t, <-over)
	if head != "POST /v1/traces application/x-protobuf k" {
		t.Errorf("got %q", head)
	}
	want := `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"sandpit"}}]},"scopeSpans":[{"scope":{"name":"sandpit.dev","version":"v1"},"spans":[
{"traceId":"AAAAAAAAAAAAAAAAAAAAAQ==","spanId":"AAAAAAAAAAI=","traceState":"v=1","parentSpanId":"AAAAAAAAAAM=","name":"GET /x","kind":"SPAN_KIND_SERVER","startTimeUnixNano":"1700000000123456789","endTimeUnixNano":"1700000001123456789",
"attributes":[{"key":"s","value":{"stringValue":"é"}},{"key":"empty","value":{"stringValue":""}},{"key":"n","value":{"intValue":"-5"}},{"key":"b","value":{"boolValue":true}},{"key":"f","value":{"doubleValue":1.5}}],
"events":[{"timeUnixNano":"1700000000123456789","name":"happened","attributes":[{"key":"k","value":{"stringValue":"v"}}]}],"status":{"code":"STATUS_CODE_ERROR"}}]}]}]}`
	if a, b := canonical(t, text), canonical(t, want); a != b {
		t.Errorf("got  %s\nwant %s", a, b)
	}
	if c := e.Counts(); c != (Counts{Sent: 1}) {
		t.Errorf("got %+v", c)
	}
}

func canonical(t *testing.T, text string) string {
	t.Helper()
	var v any
	must(t, json.Unmarshal([]byte(text), &v))
	b, err := json.Marshal(v)
	must(t, err)
	return string(b)
}

func TestASystemThatIsAwayCostsSpansAlone(t *testing.T) {
	stuck, release := make(chan bool), make(chan bool)
	var once sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		once.Do(func() { close(stuck) })
		<-release
	}))
	defer server.Close()
	e := New(Options{URL: server.URL, Delay: time.Millisecond, Timeout: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error)
	go func() { over <- e.Run(ctx) }()
	e.Export(new(trace.Data))
	<-stuck
	const more = 10_000
	for range more { // none of which waits
		e.Export(new(trace.Data))
	}
	if c := e.Counts(); c.Dropped != more-maxQueue || len(e.queue) != maxQueue {
		t.Errorf("got %+v with %d waiting", c, len(e.queue))
	}
	close(release)
	cancel()
	must(t, <-over)
	if c := e.Counts(); c.Sent+c.Failed+c.Dropped != more+1 {
		t.Errorf("got %+v", c)
	}
}

func TestWhatIsLeftIsSentAtTheEnd(t *testing.T) {
	var mu sync.Mutex
	n := 0
	decode := decoder(t)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		text, err := decode(body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		n += strings.Count(text, `"traceId"`)
	}))
	defer server.Close()
	e := New(Options{URL: server.URL, Delay: time.Hour})
	const all = maxBatch*2 + 5
	for range all {
		e.Export(&trace.Data{Name: "x"})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, e.Run(ctx))
	if c := e.Counts(); n != all || c.Sent != all {
		t.Errorf("%d came, %+v", n, c)
	}
}

func TestWhichAnswersAreTriedAgain(t *testing.T) {
	for _, c := range []struct {
		status int
		wait   string
		again  time.Duration
	}{{400, "", -1}, {401, "5", -1}, {307, "", -1}, {500, "", -1}, {429, "7", 7 * time.Second}, {503, "", 0}, {502, "99999999", maxWait}, {504, "-5", 0}} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.Header().Set("Retry-After", c.wait)
			w.WriteHeader(c.status)
		}))
		e := New(Options{URL: server.URL, Headers: map[string]string{"X-Key": "secret"}})
		again, err := e.post(t.Context(), nil)
		if err == nil || again != c.again || strings.Contains(err.Error(), "secret") {
			t.Errorf("%d: got %v, %v", c.status, again, err)
		}
		server.Close()
	}
}
