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
			b.Mounts = []sandbox.Mount{{Volume: sandbox.ID(text), Name: text, Path: text, Sub: text}, {Volume: volumeID(1), ReadOnly: true}}
			kept, disk := snapshot(1, 1), volume(1)
			kept.Name, kept.Image, kept.CreatedBy, kept.Detail, kept.Env = text, text, text, text, b.Env
			disk.Name, disk.Runtime, disk.CreatedBy = text, text, text
			insertSnapshots(t, s, kept)
			insertVolumes(t, s, disk)
			e := event(1, "p")
			e.Command, e.Detail, e.Path, e.Actor = text, text, text, text
			e.Changes = []sandbox.FileChange{{Path: text, Action: text, Size: math.MinInt64}, {Path: "last", Size: math.MaxInt64}}
			insert(t, s, b)
			appendEvents(t, s, e)
			decoy := box(2)
			decoy.Mounts = []sandbox.Mount{{Volume: sandbox.ID(text + "x"), Path: text}}
			decoy.Metadata = map[string]string{text + "x": text, "y" + text: text}
			insert(t, s, decoy)

			view(t, s, func(tx store.Tx) error {
				got, err := tx.Sandboxes().ByKey("default", text)
				wantSame(t, "ByKey", got, b)
				return err
			})
			view(t, s, func(tx store.Tx) error {
				got, err := tx.Snapshots().ByName(boxID(1), text)
				wantSame(t, "the snapshot", got, kept)
				return err
			})
			view(t, s, func(tx store.Tx) error {
				got, err := tx.Volumes().ByName("default", text)
				wantSame(t, "the volume", got, disk)
				return err
			})
			view(t, s, func(tx store.Tx) error {
				got, err := tx.Volumes().Users(sandbox.ID(text))
				wantSame(t, "Users", got, []sandbox.ID{b.ID})
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
		b.Limits.CPU, b.RunTime, b.TTL = 0.1, math.MaxInt64, math.MinInt64
		insert(t, s, b)
		view(t, s, func(tx store.Tx) error {
			got, err := tx.Sandboxes().Get(b.ID)
			wantSame(t, "Get", got, b)
			return err
		})
	})
}
