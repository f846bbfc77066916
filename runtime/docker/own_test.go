// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"strings"
	"testing"
)

func TestAProcessKnowsItsContainerByItsMounts(t *testing.T) {
	id := strings.Repeat("0a", 32)
	for name, test := range map[string]struct{ mountinfo, want string }{
		"Docker":      {"631 600 254:1 /var/lib/docker/containers/" + id + "/hostname /etc/hostname rw,relatime - ext4 /dev/vda1 rw\n", id},
		"Podman":      {"631 600 0:23 /containers/storage/overlay-containers/" + id + "/userdata/hostname /etc/hostname rw - tmpfs tmpfs rw\n", id},
		"AHost":       {"22 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw\n", ""},
		"AnotherFile": {"631 600 254:1 /var/lib/docker/containers/" + id + "/hosts /etc/hosts rw - ext4 /dev/vda1 rw\n", ""},
		"NoID":        {"631 600 254:1 /srv/" + id[:63] + "g/hostname /etc/hostname rw - ext4 /dev/vda1 rw\n", ""},
		"HalfALine":   {"631 600 254:1 /x\n", ""},
		"Nothing":     {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ownContainer(test.mountinfo); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	for _, test := range []struct {
		kind, name string
		want       bool
	}{{"volume", id, true}, {"volume", "sandpit", false}, {"bind", id, false}, {"volume", "", false}} {
		if isAnonymous(test.kind, test.name) != test.want {
			t.Errorf("%s %q: want %v", test.kind, test.name, test.want)
		}
	}
}
