// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"sandpit.dev/internal/skiptest"
)

const testToken = "0123456789abcdef0123456789abcdef"

// say is a message as a kernel says it, in chunks of n bytes.
func say(text string, n int) string {
	var b strings.Builder
	for {
		part, kind := text, "."
		if len(text) > n {
			part, kind = text[:n], "+"
		}
		text = text[len(part):]
		fmt.Fprintf(&b, "\x1f%s:%s%04x%s", testToken, kind, len(part), part)
		if kind == "." {
			return b.String()
		}
	}
}

// split feeds a stream in pieces of n bytes.
func split(stream string, n int) (text string, messages []string, err error) {
	s := splitter{mark: marker(testToken)}
	for len(stream) > 0 && err == nil {
		part := stream[:min(n, len(stream))]
		stream = stream[len(part):]
		err = s.feed([]byte(part), func(b []byte) { text += string(b) }, func(b []byte) error {
			messages = append(messages, string(b))
			return nil
		})
	}
	s.rest(func(b []byte) { text += string(b) })
	return text, messages, err
}

func TestMessagesStandBetweenTextWhateverItIsCutInto(t *testing.T) {
	t.Parallel()
	near := "\x1f" + testToken[:31] + "x\x1f\x1f" + testToken
	stream := "a" + say(`{"t":"x"}`, 100) + near + say("long message", 5) + say("", 5) + "b\x1f" + testToken[:20]
	for n := 1; n <= len(stream); n++ {
		text, messages, err := split(stream, n)
		if want := "a" + near + "b\x1f" + testToken[:20]; err != nil || text != want {
			t.Fatalf("in pieces of %d: %q, %v; want %q", n, text, err, want)
		}
		if got := strings.Join(messages, "|"); got != `{"t":"x"}|long message|` {
			t.Fatalf("in pieces of %d: %q", n, got)
		}
	}
}

func TestChunksThatBreakTheProtocolAreErrors(t *testing.T) {
	t.Parallel()
	head := "\x1f" + testToken + ":"
	for name, stream := range map[string]string{
		"a length that is none":     head + ".00g0",
		"a signed length":           head + ".+001x",
		"a chunk over its bound":    head + ".1001" + strings.Repeat("x", 0x1001),
		"a kind that is none":       head + "!0001x",
		"a message over its bound":  strings.Repeat(head+"+1000"+strings.Repeat("x", 0x1000), MaxMessage/0x1000+1),
		"an empty kind and a blank": head + " 0001x",
	} {
		if _, _, err := split(stream, 1<<16); err == nil {
			t.Errorf("%s is no error", name)
		}
	}
}

func TestAMessageOfManySmallItemsTakesLittleMemory(t *testing.T) {
	skiptest.WithShort(t, "a message of many megabytes is read")
	for name, message := range map[string]string{
		"traceback": `{"t":"error","traceback":[` + strings.Repeat(`"",`, 5<<20) + `""]}`,
		"omitted":   `{"t":"result","omitted":[` + strings.Repeat(`"",`, 5<<20) + `""]}`,
		"data":      `{"t":"result","data":{` + strings.Repeat(`"":0,`, 3<<20) + `"":0}}`,
		"names": `{"t":"result","data":{` + func() string {
			var b strings.Builder
			for i := range 1 << 20 {
				fmt.Fprintf(&b, `"%d":0,`, i)
			}
			return b.String()
		}() + `"":0}}`,
		"unknown": `{"t":"x","y":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := parseMessage([]byte(message))
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
			t.Errorf("%s: %d MB for a message of %d MB", name, grown>>20, len(message)>>20)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(m.Traceback) > maxLines || len(m.Data) > maxFormsRead {
			t.Errorf("%s: %d lines, %d forms", name, len(m.Traceback), len(m.Data))
		}
	}
}

// FuzzSplitter: no stream makes the splitter fail but by an error, hold more than its
// bounds, or change what is not a message; and pieces make no difference.
func FuzzSplitter(f *testing.F) {
	f.Add([]byte("text"+say(`{"t":"start","id":1}`, 8)+"more"), byte(3))
	f.Add([]byte("\x1f"+testToken+":.0003abcd"), byte(1))
	f.Add([]byte("\x1f\x1f"+testToken+":+ffff"), byte(40))
	f.Fuzz(func(t *testing.T, stream []byte, piece byte) {
		// A fuzzer cannot guess a token: an @ stands for a marker.
		data := string(bytes.ReplaceAll(stream, []byte("@"), marker(testToken)))
		text, messages, err := split(data, len(data)+1)
		text2, messages2, err2 := split(data, int(piece)+1)
		if (err == nil) != (err2 == nil) || text != text2 || strings.Join(messages, "|") != strings.Join(messages2, "|") {
			t.Fatalf("in pieces of %d: %q %q %v, at once %q %q %v", piece, text2, messages2, err2, text, messages, err)
		}
		if !strings.Contains(data, string(marker(testToken))) && (text != data || err != nil) {
			t.Fatalf("text without a message came as %q, %v", text, err)
		}
	})
}

// FuzzMessage: whatever a kernel says of a cell, what is passed on is within the bounds.
func FuzzMessage(f *testing.F) {
	for _, s := range []string{
		`{"t":"result","id":1,"main":true,"data":{"text/plain":"x","image/png":"iVBORw0KGgo=","application/json":{"a":[1]}},"cut":true,"omitted":["a/b"]}`,
		`{"t":"error","id":1,"name":"\u0000E\ud800","value":"v","traceback":["a"]}`,
		`{"t":"end","id":1,"status":"error","exit":-5,"dropped":9000000000}`,
		`{"t":"result","id":1,"data":{"x/y+json":"{}","X/Y":"1","text/html":5,"application/json":null}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := newSession(State{Language: Python, Token: testToken}, nil)
		s.begin(1)
		for range 3 {
			if s.message(0, b, &Handler{}) != nil {
				return
			}
		}
		o := s.run.outcome
		if o.Count < 0 || o.Dropped < 0 || len(o.Results) > MaxResults {
			t.Fatalf("%+v", o)
		}
		for _, r := range o.Results {
			if len(r.More) > MaxForms || len(r.Omitted) > 2*maxOmitted || len(r.PNG) > 0 && !bytes.HasPrefix(r.PNG, []byte("\x89PNG")) {
				t.Fatalf("%+v", r)
			}
			if !utf8Valid(r.Text, r.HTML, r.Markdown, r.SVG, r.LaTeX, r.JavaScript, string(r.JSON)) {
				t.Fatalf("invalid UTF-8 in %+v", r)
			}
		}
		if e := o.Error; e != nil && (!utf8Valid(e.Name, e.Value) || len(e.Name) > maxName || len(e.Value) > maxValue) {
			t.Fatalf("%+v", e)
		}
	})
}

func utf8Valid(all ...string) bool {
	for _, s := range all {
		if strings.ToValidUTF8(s, "") != s {
			return false
		}
	}
	return true
}
