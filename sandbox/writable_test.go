// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/sandbox"
)

func TestForRoot(t *testing.T) {
	mounts := []sandbox.Mount{{Path: "/opt/data"}}
	for _, tc := range []struct{ path, want string }{
		{"/home/sandbox/.local/bin:/usr/local/bin:/usr/bin", "/usr/local/bin:/usr/bin"},
		{"/usr/bin:", "/usr/bin"},
		{"/usr/bin::.:bin:./bin", "/usr/bin"},
		{"/workspace:/workspace/bin:/artifacts/x:/tmp:/var/tmp/x:/home/other:/usr/bin", "/usr/bin"},
		{"//tmp/x:/usr/./../tmp:/usr/../workspace/bin:/tmp/:/usr/bin/", "/usr/bin/"},
		{"/proc/self/cwd:/proc/1/root/tmp:/dev/shm:/dev/fd/3:/bin", "/bin"},
		{"/run/lock:/var/lock/bin:/var/run/lock:/run/current/bin:/bin", "/run/current/bin:/bin"},
		{"/opt/data:/opt/data/bin:/opt/database:/opt", "/opt/database:/opt"},
		{"/workspaces:/tmpfiles:/bin", "/workspaces:/tmpfiles:/bin"},
		{"/tmp", ""},
	} {
		env := map[string]string{"PATH": tc.path, "HOME": "/tmp/h", "LANG": "C", "X": "/tmp"}
		want := map[string]string{"LANG": "C", "X": "/tmp"}
		if tc.want != "" {
			want["PATH"] = tc.want
		}
		if d := cmp.Diff(want, sandbox.ForRoot(env, mounts, sandbox.Account{})); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.path, d)
		}
		if env["PATH"] != tc.path {
			t.Errorf("the variables themselves became %q", env)
		}
	}
	if got := sandbox.ForRoot(map[string]string{"HOME": "/srv/home"}, mounts, sandbox.Account{})["HOME"]; got != "/srv/home" {
		t.Errorf("a home that is no user's became %q", got)
	}
}
