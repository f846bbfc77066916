// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// escapes are ways out that worked elsewhere and are in no other group: what published benchmarks of
// misconfigured containers look for, and calls that are younger than the lists of others.
var escapes = []attempt{
	both("find a container runtime's socket, a cluster's token or a service manager", enoent, `result = each(os.stat, ['/var/run/docker.sock', '/run/docker.sock', '/run/containerd/containerd.sock',
    '/run/podman/podman.sock', '/run/crio/crio.sock', '/var/run/secrets/kubernetes.io', '/run/secrets', '/run/dbus/system_bus_socket', '/run/systemd/private', '/.dockerenv', '/host', '/hostfs', '/rootfs'])`),
	both("find a process that did not begin in the sandbox", "NONE", `parents = {}
for p in glob.glob('/proc/[0-9]*/status'):
    try: parents[int(p.split('/')[2])] = int([l for l in read(p).decode().splitlines() if l.startswith('PPid:')][0].split()[1])
    except OSError: pass
assert 1 in parents and os.getpid() in parents
result = ', '.join(str(p) for p in parents if p != 1 and parents[p] == 0) or 'NONE'`),
	both("find the server's variables in one's own", "NONE", `result = ', '.join(n for n, v in os.environ.items() if n.startswith(('SANDPIT_', 'AWS_', 'KUBERNETES_', 'DOCKER_', 'GO', 'CI')) or FACTS['dir'] in v or FACTS['image'] in v) or 'NONE'`),
	both("find a release agent of any hierarchy", "NONE", `result = ', '.join(glob.glob('/sys/fs/cgroup/**/*release*', recursive=True)) or 'NONE'`),
	both("have files run by an interpreter of one's own on the host", enoent+" or "+eacces, `result = each(lambda n: write('/proc/sys/fs/binfmt_misc/' + n, ':x:M::\\x7fSP::/workspace/x:CF'), ['register', 'status'])`),
	both("name the programs that the kernel starts on the host", eacces+" or "+enoent, `result = each(lambda p: write('/proc/sys/kernel/' + p, '/workspace/x'), there('/proc/sys/kernel/', '''core_pattern modprobe hotplug poweroff_cmd
    usermodehelper/bset usermodehelper/inheritable core_pipe_limit'''))`),
	both("choose the number of the next process", eacces+" or "+eperm+" or "+erofs+" or "+enoent, `write('/proc/sys/kernel/ns_last_pid', '4000')`),
	both("find paths of the host by the new calls for mounts", "NONE or "+eperm+" or "+enosys, `ids = (ctypes.c_uint64 * 512)()
request = lambda id, what: ctypes.create_string_buffer(struct.pack('IIQQ', 24, 0, id, what), 24)
n = raw(458, request(0xffffffffffffffff, 0), ids, 512, 0)
assert n >= 1
text = b''
for i in ids[:n]:
    buf = ctypes.create_string_buffer(8192)
    raw(457, request(i, 0x23b), buf, 8192, 0)
    text += buf.raw
assert b'proc' in text
found = [w for w in (os.path.dirname(FACTS['dir']), FACTS['image']) if w.encode() in text]
lines = len(read('/proc/self/mountinfo').splitlines())
result = ', '.join(found) or ('NONE' if n <= lines else '%d mounts, and %d in the list' % (n, lines))`),
	both("ask for the mounts of other namespaces by their numbers", enoent+" or "+eperm+" or "+enosys+" or "+einval, `ids = (ctypes.c_uint64 * 16)()
result = each(lambda n: raw(458, ctypes.create_string_buffer(struct.pack('IIQQQ', 32, 0, 0xffffffffffffffff, 0, n), 32), ids, 16, 0), range(1, 64))`),
	both("set attributes that no command may by the new calls", eperm+" or "+enosys, `open('/workspace/young', 'w').close()
value = ctypes.create_string_buffer(b'y')
arguments = ctypes.create_string_buffer(struct.pack('QII', ctypes.addressof(value), 1, 0), 16)
result = each(lambda n: raw(463, AT, b'/workspace/young', 0, n, arguments, 16), [b'trusted.x', b'trusted.overlay.opaque'])`),
	both("make a file immutable by the new call", eperm+" or "+enosys+" or REFUSED EOPNOTSUPP", `open('/workspace/young', 'w').close()
raw(469, AT, b'/workspace/young', ctypes.create_string_buffer(struct.pack('QIIII', 8, 0, 0, 0, 0), 24), 24, 0)`),
	both("set attributes of security modules by the new calls", eperm+" or "+enosys, `result = each(lambda n: raw(n, 100, 0, 0, 0), [459, 460, 461])`),
	// The kernel lets nobody have a second one: so no program answers in the agent's place what others are told.
	both("answer other programs' calls", "REFUSED EBUSY", `code = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0x7fff0000))
program = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', 1, ctypes.addressof(code)))
raw(317 if os.uname().machine != 'aarch64' else 277, 1, 8, program)`),
	asUser("take the descriptors of root's processes", eperm, `f = os.pidfd_open(FACTS['root_pid'])
result = each(lambda n: call('pidfd_getfd', f, n, 0), range(4))`),
	asUser("advise the kernel on the memory of root's processes", eperm, `result = each(lambda a: raw(440, os.pidfd_open(FACTS['root_pid']), iovec(0x400000, 4096), 1, a, 0), [20, 21])`),
	asUser("reap the memory of root's processes", eperm+" or "+einval+" or "+enosys, `raw(448, os.pidfd_open(FACTS['root_pid']), 0)`),
}

// linksUnderMasks imports a disk that has links where the sandbox has file systems and masks of its own, to files
// of the kernel's that must not be written: what a runtime binds over a path, it must not bind over what a link
// there leads to.
func linksUnderMasks(t *testing.T, s *suite) {
	s.need(t, runtime.Snapshots)
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, h := range []tar.Header{
		{Name: "dev", Typeflag: tar.TypeDir, Mode: 0o777}, {Name: "dev/pts", Typeflag: tar.TypeSymlink, Linkname: "/proc/sys/kernel"},
		{Name: "dev/null", Typeflag: tar.TypeSymlink, Linkname: "/proc/sys/kernel/core_pattern"}, {Name: "dev/console", Typeflag: tar.TypeSymlink, Linkname: "/proc/sysrq-trigger"},
		{Name: "dev/shm", Typeflag: tar.TypeSymlink, Linkname: "/proc/1"}, {Name: "proc", Typeflag: tar.TypeDir, Mode: 0o777}, {Name: "proc/kcore", Typeflag: tar.TypeSymlink, Linkname: "/etc"},
		{Name: "proc/sys", Typeflag: tar.TypeSymlink, Linkname: "/workspace"}, {Name: "sys", Typeflag: tar.TypeDir, Mode: 0o777}, {Name: "sys/fs", Typeflag: tar.TypeSymlink, Linkname: "/workspace"},
	} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	id := sandbox.NewID()
	if _, err := s.snapshotter(t).Import(t.Context(), id, &archive, plenty); err != nil {
		t.Fatalf("an archive with links in directories that no sandbox shows: %v", err)
	}
	b := s.create(t, s.from(id))
	facts := withBox(t, s, b, hostFacts(t, s))
	for _, user := range []string{"sandbox", "root"} {
		t.Run(user, func(t *testing.T) {
			if user == "root" {
				s.need(t, runtime.RootUser)
			}
			b.attempts(t, user, facts, []attempt{
				both("find one of the links", "NONE", `result = ', '.join(p for p in ('/dev/null', '/dev/pts', '/dev/shm', '/dev/console', '/proc/kcore', '/proc/sys', '/sys/fs') if os.path.islink(p)) or 'NONE'`),
				both("have another file for the null device", "(1, 3)", `st = os.stat('/dev/null'); result = str((os.major(st.st_rdev), os.minor(st.st_rdev)))`),
			})
			b.attempts(t, user, facts, kernelFiles)
		})
	}
}

// hostSwaps turns a directory and a file into links to the host's secret, and back, all the time.
const hostSwaps = `
os.makedirs('/workspace/race', exist_ok=True)
os.chdir('/workspace/race')
os.makedirs('dir/deep'); open('dir/secret', 'w').write('the sandbox\'s'); open('secret', 'w').write('the sandbox\'s')
os.symlink(FACTS['dir'], 'way'); os.symlink(FACTS['secret'], 'file')
def swap():
    while True:
        libc.renameat2(AT, b'dir', AT, b'way', 2)
        libc.renameat2(AT, b'secret', AT, b'file', 2)
if os.fork() == 0: swap()
`

// hostRaces has the host read a disk whose names change under it, by what reads one from outside: differences,
// snapshots, exports, imports and archives of directories.
func hostRaces(t *testing.T, s *suite) {
	s.need(t, runtime.Snapshots)
	host := hostFacts(t, s)
	dir, secret := host["dir"].(string), host["secret"].(string)
	if b, err := os.ReadFile(secret); err != nil || string(b) != "the host's" {
		t.Fatalf("the control: who follows the link has %q (%v)", b, err)
	}
	b := s.create(t, s.spec())
	b.holds(t, strings.NewReplacer("FACTS['dir']", "'"+dir+"'", "FACTS['secret']", "'"+secret+"'").Replace(hostSwaps), "sandbox")
	d := s.snapshotter(t)
	links, files := 0, 0
	for range 25 {
		c, err := d.Diff(t.Context(), s.Image, runtime.Point{}, runtime.Point{Instance: b.Handle().ID}, 10_000)
		if err != nil {
			t.Fatalf("Diff: %v", err)
		}
		for _, f := range c.Files {
			if strings.HasPrefix(f.Path, dir) {
				t.Fatalf("a difference tells of the host: %+v", f)
			}
		}
		var archive bytes.Buffer
		id := s.keep(t, b)
		if err := d.Export(t.Context(), id, &archive); err != nil {
			t.Fatalf("Export: %v", err)
		}
		if err := d.RemoveSnapshot(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(archive.String(), "the host's") {
			t.Fatal("an export has the host's secret in it")
		}
		for r := tar.NewReader(bytes.NewReader(archive.Bytes())); ; {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(h.Name, "race/dir") || strings.HasSuffix(h.Name, "race/dir/") {
				if h.Typeflag == tar.TypeSymlink {
					links++
				} else {
					files++
				}
			}
		}
		_, packed, err := b.agent.Pack(t.Context(), "/workspace/race", sandbox.PackFilesOptions{})
		if err != nil {
			t.Fatalf("Pack: %v", err)
		}
		got, err := io.ReadAll(packed)
		if err == nil && bytes.Contains(got, []byte("the host's")) {
			t.Fatal("an archive has the host's secret in it")
		}
		_ = packed.Close()
	}
	t.Logf("the name was a link in %d of %d exports", links, links+files)
	if links+files != 25 {
		t.Errorf("the name is in %d of 25 exports", links+files)
	}
	b.ok("echo the sandbox still works")
}
