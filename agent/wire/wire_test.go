// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/agent/wire"
)

type frame struct {
	Type    wire.Type
	Payload string
}

func readAll(r io.Reader) (all []frame, err error) {
	fr := wire.NewReader(r)
	for {
		t, p, err := fr.Next()
		if err != nil {
			return all, err
		}
		all = append(all, frame{t, string(p)})
	}
}

var someFrames = []frame{
	{wire.Hello, "sbpt\x01"}, {wire.Call, `{"op":"ping"}`}, {wire.Data, strings.Repeat("x", wire.MaxData)},
	{wire.End, ""}, {wire.Call, strings.Repeat("y", wire.MaxJSON)}, {0x99, "unknown"}, {wire.Data, "z"},
}

func encode(frames []frame) []byte {
	var b []byte
	for _, f := range frames {
		b = wire.Append(b, f.Type, []byte(f.Payload))
	}
	return b
}

func TestReader(t *testing.T) {
	t.Run("GivesWhatWasAppended", func(t *testing.T) {
		for name, r := range map[string]io.Reader{
			"AtOnce":     bytes.NewReader(encode(someFrames)),
			"ByHalves":   iotest.HalfReader(bytes.NewReader(encode(someFrames))),
			"WithTheEOF": iotest.DataErrReader(bytes.NewReader(encode(someFrames))),
		} {
			got, err := readAll(r)
			if err != io.EOF {
				t.Errorf("%s: error %v", name, err)
			}
			if diff := cmp.Diff(someFrames, got); diff != "" {
				t.Errorf("%s: %d frames differ", name, len(got))
			}
		}
	})
	t.Run("TellsACutFrameFromAnEnd", func(t *testing.T) {
		small := []frame{{wire.Hello, "sbpt\x01"}, {wire.Call, `{}`}, {wire.End, ""}}
		b := encode(small)
		ends := map[int]bool{0: true, 9: true, 15: true, 19: true}
		for n := range len(b) + 1 {
			_, err := readAll(bytes.NewReader(b[:n]))
			if want := map[bool]error{true: io.EOF, false: io.ErrUnexpectedEOF}[ends[n]]; err != want {
				t.Errorf("cut after %d bytes: %v, want %v", n, err, want)
			}
		}
	})
	t.Run("RefusesFramesOverTheirBound", func(t *testing.T) {
		for _, typ := range []wire.Type{wire.Call, wire.Data, wire.LogStdout, wire.LogStart, 0x7f} {
			var h [wire.HeaderLen]byte
			wire.PutHeader(h[:], typ, typ.Limit()+1)
			_, err := readAll(bytes.NewReader(h[:]))
			var fe *wire.FormatError
			if !errors.As(err, &fe) {
				t.Errorf("type %#x: %v", typ, err)
			}
		}
	})
	t.Run("GoesOnAfterAnErrorOfTheStream", func(t *testing.T) {
		r := wire.NewReader(iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(encode(someFrames[:2])))))
		if _, _, err := r.Next(); err != iotest.ErrTimeout {
			t.Fatalf("error: %v", err)
		}
		for _, want := range someFrames[:2] {
			typ, p, err := r.Next()
			if err != nil || typ != want.Type || string(p) != want.Payload {
				t.Errorf("got %v %q %v", typ, p, err)
			}
		}
	})
	t.Run("DoesNotReserveWhatIsOnlyClaimed", func(t *testing.T) {
		var h [wire.HeaderLen]byte
		wire.PutHeader(h[:], wire.Call, wire.MaxJSON)
		n := testing.AllocsPerRun(10, func() { _, _ = readAll(bytes.NewReader(h[:])) })
		if n > 10 {
			t.Errorf("%v allocations", n)
		}
	})
}

func TestLogFrame(t *testing.T) {
	at := time.Unix(1_700_000_000, 123_456_789)
	b := wire.AppendLog(nil, wire.LogStderr, 7, at, []byte("some output"))
	got, err := wire.ParseLog(wire.LogStderr, b[wire.HeaderLen:])
	if err != nil || got.Seq != 7 || !got.At.Equal(at) || string(got.Data) != "some output" {
		t.Errorf("got %+v %v", got, err)
	}
	t.Run("WithAnyBitChangedIsRefused", func(t *testing.T) {
		for i := wire.HeaderLen; i < len(b); i++ {
			c := bytes.Clone(b)
			c[i] ^= 0x10
			if _, err := wire.ParseLog(wire.LogStderr, c[wire.HeaderLen:]); err == nil {
				t.Errorf("byte %d", i)
			}
		}
		if _, err := wire.ParseLog(wire.LogStdout, b[wire.HeaderLen:]); err == nil {
			t.Error("of another type")
		}
	})
}

func TestEscapeName(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "ü/日本": "ü/日本", `a\b`: `a\b`, "a\xffb": "a\uefffb",
		"\uef80": "\uefee\uefbe\uef80", "\xed\xa0\x80": "\uefed\uefa0\uef80",
	} {
		if got := wire.EscapeName(in); got != want {
			t.Errorf("%q: got %+q, want %+q", in, got, want)
		}
		if got := wire.UnescapeName(want); got != in {
			t.Errorf("%+q: got %q, want %q", want, got, in)
		}
	}
}

func FuzzEscapeName(f *testing.F) {
	for _, s := range []string{"", "a\xffb", "\uef80", "\xee\xbe", "日本\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e := wire.EscapeName(s)
		if !utf8.ValidString(e) {
			t.Errorf("%q becomes %q", s, e)
		}
		if got := wire.UnescapeName(e); got != s {
			t.Errorf("%q comes back as %q", s, got)
		}
		_ = wire.UnescapeName(s)
	})
}

func FuzzReader(f *testing.F) {
	f.Add(encode(someFrames[:2]))
	f.Add(wire.AppendLog(nil, wire.LogStdout, 1, time.Unix(1, 2), []byte("out")))
	f.Add([]byte{3, 0, 0, 200, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		frames, err := readAll(bytes.NewReader(b))
		if err == nil {
			t.Fatal("no error at the end")
		}
		if again := encode(frames); !bytes.HasPrefix(b, again) {
			t.Errorf("what was read is not what stood there")
		} else if err == io.EOF && len(again) != len(b) {
			t.Errorf("%d bytes were left out", len(b)-len(again))
		}
		for _, fr := range frames {
			lf, err := wire.ParseLog(fr.Type, []byte(fr.Payload))
			if err == nil && lf.Seq < 0 {
				t.Error("a negative number")
			}
			var req wire.Request
			_ = wire.Decode([]byte(fr.Payload), &req)
			_, _ = wire.CheckHello([]byte(fr.Payload))
		}
	})
}
