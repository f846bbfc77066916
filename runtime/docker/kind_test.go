// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker"
)

func TestTheSection(t *testing.T) {
	for name, tt := range map[string]struct {
		kind   docker.Kind
		docker string // DOCKER_HOST
		wanted bool
		field  string // of the error; "": there is none
	}{
		"Nothing":             {kind: docker.Kind{}},
		"NothingBesideDocker": {kind: docker.Kind{}, docker: "ssh://elsewhere"},
		"Auto":                {kind: docker.Kind{Host: "auto"}, wanted: true},
		"ASocket":             {kind: docker.Kind{Host: "unix:///run/docker.sock", Runtime: "runsc"}, wanted: true},
		"AnAddress":           {kind: docker.Kind{Host: "tcp://127.0.0.1:2375", Stream: true}, wanted: true},
		"NoAddress":           {kind: docker.Kind{Host: "/run/docker.sock"}, wanted: true, field: "docker.host"},
		"DockersOwn":          {kind: docker.Kind{Host: "auto"}, docker: "npipe://x", wanted: true, field: "DOCKER_HOST"},
		"NoCertificates":      {kind: docker.Kind{Host: "tcp://h:1", CertPath: "/nowhere"}, wanted: true, field: "DOCKER_CERT_PATH"},
		"ARuntimeAlone":       {kind: docker.Kind{Runtime: "runsc"}, field: "docker.host"},
		"ARuntimeThatIsAPath": {kind: docker.Kind{Host: "auto", Runtime: "/bin/sh"}, wanted: true, field: "docker.runtime"},
	} {
		t.Run(name, func(t *testing.T) {
			k := tt.kind
			*k.Variables()["DOCKER_HOST"].(*string) = tt.docker
			if k.Wanted() != tt.wanted {
				t.Errorf("it is wanted: %v", k.Wanted())
			}
			err := k.Check()
			if (err == nil) != (tt.field == "") || err != nil && (fault.Of(err) != fault.Invalid || !strings.HasPrefix(fault.As(err).Message, tt.field+":")) {
				t.Errorf("got %v, want an error about %q", err, tt.field)
			}
		})
	}
}

// A server that is to have an Engine which is not there does not start without it.
func TestAnEngineThatIsNotThere(t *testing.T) {
	k := docker.Kind{Host: "unix://" + t.TempDir() + "/none"}
	_, err := k.Open(t.Context(), runtime.OpenOptions{Place: runtime.Place{Dir: t.TempDir()}})
	if fault.Of(err) != fault.Unavailable || fault.As(err).Remedy == "" {
		t.Errorf("got %v", err)
	}
}
