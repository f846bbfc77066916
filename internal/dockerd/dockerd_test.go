// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dockerd

import (
	"strings"
	"testing"
)

func TestAnEngineDoesNotHideItsOwnData(t *testing.T) {
	for _, dir := range []string{"/run/bench/docker", "/opt/bench/docker", "/etc/docker"} {
		if err := checkPlace(dir); err == nil || !strings.Contains(err.Error(), "choose another directory") {
			t.Errorf("%s: got %v, want that another is to be chosen", dir, err)
		}
	}
}
