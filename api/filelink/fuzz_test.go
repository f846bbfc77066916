// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package filelink_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"sandpit.dev/api/filelink"
)

// FuzzLink holds that no token is taken that was not made, and that no address names a file in another's directory.
func FuzzLink(f *testing.F) {
	links, err := filelink.New(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		f.Fatal(err)
	}
	now := time.Unix(1_800_000_000, 0)
	made := links.Token(filelink.Grant{Project: "p", Sandbox: "s", Path: "/workspace/a", Expires: now.Add(time.Hour)})
	f.Add(made, filelink.Root+made+"/a")
	f.Add(made+"A", filelink.Root+"/%2e%2e%2fa")
	f.Add("spf_.", filelink.Root)
	f.Fuzz(func(t *testing.T, token, escaped string) {
		if g, err := links.Read(token, now); err == nil && token != made {
			t.Errorf("%q is taken: %+v", token, g)
		}
		if _, name, err := filelink.Parse(escaped); err == nil && (name == "" || strings.Contains(name, "/")) {
			t.Errorf("%q names %q", escaped, name)
		}
	})
}
