// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import "sandpit.dev/runtime"

// changeRoot has root change what is nobody's but root's, as what apt installs does, and returns what looks whether that is as it was left. It does nothing
// where that does not outlive a stop.
func (s *suite) changeRoot(b *box) (same func()) {
	b.t.Helper()
	if !s.has(b.t, runtime.RootDisk) {
		return func() {}
	}
	b.rootOK(`echo '#!/bin/sh
echo installed' > /usr/local/bin/tool && chmod 755 /usr/local/bin/tool
echo '# line' >> /etc/profile; rm -rf /usr/share/doc; mkdir -p /opt/new /usr/share/doc/new; chown 1000:1000 /opt/new; ln -s /usr/local/bin/tool /opt/new/link
ln /usr/local/bin/tool /usr/local/bin/same; rm -f /etc/issue; mkdir /etc/issue; mv /usr/share/misc /opt/new/`)
	const look = `tool; tail -n 1 /etc/profile; ls /usr/share/doc; stat -c '%u %F' /opt/new /etc/issue; /opt/new/link; stat -c %h /usr/local/bin/same; ls /opt/new /opt/new/misc; ls /usr/share/misc 2>&1`
	want := b.run(look).Stdout
	return func() {
		b.t.Helper()
		if got := b.run(look).Stdout; got != want {
			b.t.Errorf("what root changed is after a stop:\n%s\nwant\n%s", got, want)
		}
	}
}

// rootOK runs shell text as root, and fails the test where that fails.
func (b *box) rootOK(shell string) {
	b.t.Helper()
	if o := b.asRoot(shell); o.ExitCode != 0 {
		b.t.Fatalf("as root: exit code %d: %s%s", o.ExitCode, o.Stdout, o.Stderr)
	}
}
