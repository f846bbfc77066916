// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"os"
	"testing"
)

func TestOpenFilesAreCounted(t *testing.T) {
	before, err := ReadFiles()
	if err != nil {
		t.Fatal(err)
	}
	const more = 25
	for range more {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
	}
	after, err := ReadFiles()
	if err != nil {
		t.Fatal(err)
	}
	if after.Server < before.Server+more || after.Server > after.ServerLimit || after.Host <= 0 || after.HostLimit < after.Host {
		t.Errorf("before %+v, after %d more %+v", before, more, after)
	}
}
