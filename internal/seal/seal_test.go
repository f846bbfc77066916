// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package seal_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"sandpit.dev/internal/seal"
)

// key is a key of its own for each n.
func key(n byte) []byte {
	k := make([]byte, seal.KeySize)
	for i := range k {
		k[i] = byte(i) + n
	}
	return k
}

func ring(t *testing.T, keys ...[]byte) *seal.Ring {
	t.Helper()
	r, err := seal.New(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWhatIsSealedOpensForItsPlaceAlone(t *testing.T) {
	r := ring(t, key(1))
	for _, value := range []string{"", "x", "a value of some length", strings.Repeat("long", 1<<14)} {
		sealed := r.Seal([]byte(value), "secret", "project", "box", "NAME")
		if got, err := r.Open(sealed, "secret", "project", "box", "NAME"); err != nil || string(got) != value {
			t.Fatalf("Open: %d bytes, %v; want the %d that were sealed", len(got), err, len(value))
		}
		if len(sealed) != len(value)+seal.Overhead {
			t.Errorf("%d bytes sealed take %d, want %d more", len(value), len(sealed), seal.Overhead)
		}
		if len(value) > 3 && bytes.Contains(sealed, []byte(value)) {
			t.Error("the value can be read in what was sealed")
		}
		for _, place := range [][]string{
			nil, {}, {"secret"}, {"secret", "project", "box"}, {"secret", "project", "box", "NAME", ""},
			{"secret", "project", "boxN", "AME"}, {"secret", "projectbox", "NAME"}, {"secret", "box", "project", "NAME"},
			{"secret", "project", "", "boxNAME"}, {"secret", "project", "box", "NAMe"}, {"secretprojectboxNAME"},
		} {
			if got, err := r.Open(sealed, place...); !errors.Is(err, seal.ErrNotSealed) || got != nil {
				t.Errorf("opened at %q: %q, %v; want ErrNotSealed", place, got, err)
			}
		}
	}
}

func TestTheSameValueIsNeverSealedAlike(t *testing.T) {
	r := ring(t, key(1))
	seen := map[string]bool{}
	for range 1000 {
		s := string(r.Seal([]byte("value"), "x"))
		if seen[s] {
			t.Fatal("two seals of one value are the same: a nonce was used twice")
		}
		seen[s] = true
	}
}

func TestWhatWasChangedDoesNotOpen(t *testing.T) {
	r := ring(t, key(1))
	sealed := r.Seal([]byte("value"), "x")
	for i := range sealed {
		for bit := range 8 {
			bad := bytes.Clone(sealed)
			bad[i] ^= 1 << bit
			got, err := r.Open(bad, "x")
			gone, isGone := errors.AsType[*seal.KeyGoneError](err)
			if got != nil || !isGone && !errors.Is(err, seal.ErrNotSealed) {
				t.Fatalf("with bit %d of byte %d changed: %q, %v", bit, i, got, err)
			}
			if ofID := i >= 1 && i < 9; ofID != isGone {
				t.Errorf("with byte %d changed the key is gone: %v (%v)", i, isGone, gone)
			}
		}
	}
	for n := range sealed {
		if got, err := r.Open(sealed[:n], "x"); !errors.Is(err, seal.ErrNotSealed) || got != nil {
			t.Errorf("cut to %d bytes: %q, %v; want ErrNotSealed", n, got, err)
		}
	}
	if _, err := r.Open(append(bytes.Clone(sealed), 0), "x"); !errors.Is(err, seal.ErrNotSealed) {
		t.Errorf("with a byte more: %v, want ErrNotSealed", err)
	}
}

func TestAnotherKeyOpensNothingAndIsNamed(t *testing.T) {
	first, other := ring(t, key(1)), ring(t, key(2))
	_, err := other.Open(first.Seal([]byte("value"), "x"), "x")
	gone, ok := errors.AsType[*seal.KeyGoneError](err)
	if !ok || gone.ID != first.KeyID() || !strings.Contains(err.Error(), first.KeyID()) {
		t.Fatalf("got %v, want that the key %s is gone", err, first.KeyID())
	}
	if first.KeyID() == other.KeyID() || len(first.KeyID()) != 16 {
		t.Errorf("the ids are %s and %s", first.KeyID(), other.KeyID())
	}
	if strings.Contains(hex.EncodeToString(key(1)), first.KeyID()) {
		t.Error("the id is a part of the key")
	}
}

func TestKeysRotate(t *testing.T) {
	before := ring(t, key(1))
	sealed := before.Seal([]byte("value"), "x")
	both := ring(t, key(2), key(1))
	got, err := both.Open(sealed, "x")
	if err != nil || string(got) != "value" {
		t.Fatalf("the second key does not open: %q, %v", got, err)
	}
	if both.Current(sealed) || !before.Current(sealed) {
		t.Error("Current does not tell the key that seals from one that opens")
	}
	again := both.Seal(got, "x")
	if !both.Current(again) || both.Current([]byte("none")) {
		t.Error("Current does not know what was sealed just now, or knows what never was")
	}
	after := ring(t, key(2))
	if got, err := after.Open(again, "x"); err != nil || string(got) != "value" {
		t.Errorf("without the old key: %q, %v", got, err)
	}
	if _, err := before.Open(again, "x"); err == nil {
		t.Error("the first key of the two did not seal")
	}
}

func TestDerivedKeysAreTheFirstKeysAndTheLabels(t *testing.T) {
	r := ring(t, key(1))
	a := r.Derive("a", 32)
	if len(a) != 32 || !bytes.Equal(a, ring(t, key(1), key(2)).Derive("a", 32)) {
		t.Error("a derived key is not that of the first key")
	}
	for name, other := range map[string][]byte{
		"of another label": r.Derive("b", 32), "of another key": ring(t, key(2), key(1)).Derive("a", 32), "of what ids are made of": r.Derive("id", 32),
	} {
		if bytes.Equal(a, other) {
			t.Errorf("it is the same as that %s", name)
		}
	}
	if id, _ := hex.DecodeString(r.KeyID()); bytes.HasPrefix(r.Derive("id", 32), id) {
		t.Error("a caller's label gives what the package itself uses")
	}
	if n := len(r.Derive("a", 8160)); n != 8160 {
		t.Errorf("Derive gives %d bytes, want 8160", n)
	}
}

func TestKeysAreReadInEverySpelling(t *testing.T) {
	want := ring(t, key(1)).KeyID()
	for name, text := range map[string]string{
		"base64":                 base64.StdEncoding.EncodeToString(key(1)),
		"base64, not padded":     base64.RawStdEncoding.EncodeToString(key(1)),
		"base64 for URLs":        base64.URLEncoding.EncodeToString(key(1)),
		"hex":                    hex.EncodeToString(key(1)),
		"HEX":                    strings.ToUpper(hex.EncodeToString(key(1))),
		"with comments and air":  "# the key\n\n  " + hex.EncodeToString(key(1)) + " \r\n\n",
		"with another behind it": hex.EncodeToString(key(1)) + "\n" + base64.StdEncoding.EncodeToString(key(2)),
	} {
		r, err := seal.Parse(text)
		if err != nil || r.KeyID() != want {
			t.Errorf("%s: %v, want the key %s", name, err, want)
		}
	}
	a, b := seal.Generate(), seal.Generate()
	if _, err := seal.Parse(a + "\n" + b); err != nil {
		t.Errorf("two keys that were generated: %v", err)
	}
}

func TestWhatIsNoKeyIsRefused(t *testing.T) {
	good := hex.EncodeToString(key(1))
	for name, text := range map[string]string{
		"nothing":          "",
		"only comments":    "# " + good,
		"a word":           "correct horse battery staple",
		"31 bytes":         hex.EncodeToString(key(1)[:31]),
		"33 bytes":         hex.EncodeToString(append(key(1), 0)),
		"16 bytes":         base64.StdEncoding.EncodeToString(key(1)[:16]),
		"zeros":            strings.Repeat("00", 32),
		"one byte":         strings.Repeat("ab", 32),
		"the same twice":   good + "\n" + base64.StdEncoding.EncodeToString(key(1)),
		"a bad second":     good + "\nsecret-text-that-is-no-key",
		"two on one line":  good + " " + good,
		"more than can be": many(65),
	} {
		r, err := seal.Parse(text)
		if err == nil {
			t.Errorf("%s: it is a ring with the key %s", name, r.KeyID())
			continue
		}
		if strings.Contains(err.Error(), "secret-text") || strings.Contains(err.Error(), good) {
			t.Errorf("%s: the error %q has what was in the file", name, err)
		}
	}
	if _, err := seal.Parse(many(64)); err != nil {
		t.Errorf("64 keys: %v", err)
	}
	if _, err := seal.New(); err == nil {
		t.Error("a ring without keys was made")
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(hex.EncodeToString(key(byte(i))) + "\n")
	}
	return b.String()
}
