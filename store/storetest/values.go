// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"math"
	"strings"
	"testing"
	"time"

	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// hostile are texts that have broken stores before.
func hostile() map[string]string {
	return map[string]string{
		"Quotes":      `'"; DROP TABLE events; --` + "`",
		"NUL":         "a\x00b\x00",
		"OnlyNUL":     "\x00",
		"InvalidUTF8": "a\xff\xfe\xc3(\xed\xa0\x80\x80",
		"Replacement": "\uFFFD and \xff",
		"Controls":    "\r\n\t\x1b[31m\x7f\u2028\u202e",
		"JSON":        `{"a":"b"},\u0041\"\\`,
		"Wildcards":   `%_\*?[]`,
		"Emoji":       "🧪 Ünïcode \U0010ffff",
		"Number":      "007",
		"Float":       "1e400",
		"Placeholder": "$1 ?2 :x @y",
		"Large":       strings.Repeat("0123456789abcdé", 1<<16), // 1 MB
	}
}

func values(t *testing.T, open func(*testing.T) store.Store) {
	for name, text := range hostile() {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			b := box(1)
			b.Key, b.AskedImage, b.StopDetail, b.Handle = text, text, text, []byte(text)
			b.Env = map[string]string{text: text, "x": text}
			b.Metadata = map[string]string{text: text, "other": "o"}
			e := event(1, "p")
			e.Command, e.Detail, e.Path, e.Actor = text, text, text, text
			e.Changes = []sandbox.FileChange{{Path: text, Action: text, Size: math.MinInt64}, {Path: "last", Size: math.MaxInt64}}
			insert(t, s, b)
			appendEvents(t, s, e)
			decoy := box(2)
			decoy.Metadata = map[string]string{text + "x": text, "y" + text: text}
			insert(t, s, decoy)

			view(t, s, func(tx store.Tx) error {
				got, err := tx.Sandboxes().ByKey("default", text)
				wantSame(t, "ByKey", got, b)
				return err
			})
			page, _ := list(t, s, store.SandboxQuery{Metadata: map[string]string{text: text}})
			wantSame(t, "List by label", ids(page), []sandbox.ID{b.ID})
			events, _ := listEvents(t, s, store.EventQuery{})
			wantSame(t, "events", events, []*sandbox.Event{e})
		})
	}
	t.Run("Times", func(t *testing.T) {
		s := open(t)
		b := box(1)
		zone := time.FixedZone("east", 9*3600)
		b.ExpiresAt = time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC)
		b.StartedAt = time.Date(1931, 1, 1, 0, 0, 0, 1000, time.UTC)
		b.UpdatedAt = epoch.In(zone).Add(999) // nanoseconds
		insert(t, s, b)
		want := *b
		want.UpdatedAt = epoch
		view(t, s, func(tx store.Tx) error {
			got, err := tx.Sandboxes().Get(b.ID)
			wantSame(t, "Get", got, &want)
			return err
		})
	})
	t.Run("Numbers", func(t *testing.T) {
		s := open(t)
		b := box(1)
		b.ExecCount, b.BytesUploaded, b.ExecTime = math.MaxInt64, math.MinInt64, math.MaxInt64
		b.Limits.CPU = 0.1
		insert(t, s, b)
		view(t, s, func(tx store.Tx) error {
			got, err := tx.Sandboxes().Get(b.ID)
			wantSame(t, "Get", got, b)
			return err
		})
	})
}
