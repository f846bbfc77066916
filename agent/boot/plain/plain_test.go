// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plain_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/agent/agenttest"
	"sandpit.dev/agent/boot/plain"
	"sandpit.dev/agent/embedded"
	"sandpit.dev/agent/handshake"
	"sandpit.dev/agent/mux"
	"sandpit.dev/agent/server/fork"
	"sandpit.dev/agent/server/kept"
	"sandpit.dev/agent/wire"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/skiptest"
)

// container is what somebody else makes: a root of an image's files, /proc and /dev, and a
// directory of the host with the agent in it. It ends with the agent.
const container = `set -e
mount --make-rprivate /
mount -t tmpfs none "$BOX/disk"
mkdir "$BOX/disk/upper" "$BOX/disk/work" "$BOX/disk/root"
mount -t overlay -o "lowerdir=$IMAGE,upperdir=$BOX/disk/upper,workdir=$BOX/disk/work" none "$BOX/disk/root"
cd "$BOX/disk/root"
mkdir -p proc dev agent tmp workspace root
chown "$OWNER" workspace
chmod 1777 tmp
mount -t proc none proc
mount --rbind /dev dev
mount -t tmpfs none dev/shm
mount --bind "$BOX/agent" agent
exec env -i PATH=/usr/local/bin:/usr/bin:/bin "$(command -v chroot)" . $BEFORE /agent/sandpit-agent serve /agent/config.json`

type box struct {
	dir    string
	pid    int // of the agent, outside
	config plain.Config
	client *agent.Client
	over   chan struct{} // closed when the agent has ended
}

// start runs the agent of this build in a container with these namespaces. It serves on a socket,
// unless the configuration has another way.
func start(t testing.TB, c plain.Config, flags uintptr) *box { return startBelow(t, c, flags, "") }

// startBelow does so by a program of python's, which executes what its arguments say.
func startBelow(t testing.TB, c plain.Config, flags uintptr, before string) *box {
	t.Helper()
	skiptest.WithoutRoot(t, "it makes a container")
	program, err := embedded.Program()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "plain") // t.TempDir is too long for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c.Log = "/agent/log"
	if c.Address == "" && !c.Stdio {
		c.Socket = "/agent/socket"
	}
	b := &box{dir: dir, config: c, over: make(chan struct{})}
	for _, d := range []string{"disk", "agent"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	config, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(b.path("sandpit-agent"), program, 0o755), os.WriteFile(b.path("config.json"), config, 0o600)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", container)
	cmd.Env = append(os.Environ(), "BOX="+dir, "IMAGE="+imagetest.Python(t).Root, "OWNER=1000:1000")
	if before != "" {
		if err := os.WriteFile(b.path("before.py"), []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(cmd.Env, "BEFORE=python3 /agent/before.py")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC | flags, Pdeathsig: syscall.SIGKILL}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	var stream net.Conn
	if c.Stdio {
		stream = throughStdio(t, cmd)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b.pid = cmd.Process.Pid
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.Wait()
		close(b.over)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if s := stderr.String(); s != "" {
			t.Errorf("the agent wrote:\n%s", s)
		}
	})
	dial := func(ctx context.Context) (net.Conn, error) {
		switch {
		case stream != nil:
			return stream, nil
		case c.Address != "":
			return new(net.Dialer).DialContext(ctx, "tcp", c.Address)
		}
		return new(net.Dialer).DialContext(ctx, "unix", b.path("socket"))
	}
	b.client = agent.NewClient(dial)
	switch {
	case c.Address != "" || c.Stdio:
		d := mux.NewDialer((&handshake.Dialer{Dial: dial, Key: c.Key, What: handshake.ManyCalls}).DialContext)
		t.Cleanup(func() { _ = d.Close() })
		b.client = agent.NewClient(d.DialContext)
	case c.Key != nil:
		b.client = agent.NewClient((&handshake.Dialer{Dial: dial, Key: c.Key, What: handshake.OneCall}).DialContext)
	}
	for {
		if stream != nil {
			return b
		}
		if nc, err := dial(t.Context()); err == nil {
			_ = nc.Close()
			return b
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the agent ended: %v", err)
		case <-t.Context().Done():
			t.Fatal("the agent does not serve")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// throughStdio connects a program to two pipes, and returns their other ends.
func throughStdio(t testing.TB, cmd *exec.Cmd) net.Conn {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	return &stdio{in, out.(*os.File)}
}

// stdio is the outer end of a program's standard input and output.
type stdio struct {
	in  io.WriteCloser
	out *os.File
}

func (s *stdio) Read(b []byte) (int, error)  { return s.out.Read(b) }
func (s *stdio) Write(b []byte) (int, error) { return s.in.Write(b) }
func (s *stdio) Close() error                { return errors.Join(s.in.Close(), s.out.Close()) }
func (s *stdio) LocalAddr() net.Addr         { return &net.UnixAddr{} }
func (s *stdio) RemoteAddr() net.Addr        { return &net.UnixAddr{} }
func (s *stdio) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}
func (s *stdio) SetReadDeadline(t time.Time) error { return s.out.SetReadDeadline(t) }
func (s *stdio) SetWriteDeadline(t time.Time) error {
	return s.in.(interface{ SetWriteDeadline(t time.Time) error }).SetWriteDeadline(t)
}

func (b *box) path(name string) string { return filepath.Join(b.dir, "agent", name) }

// An agent that nothing is handed to passes the suite as process 1 of a container, reached over
// a socket that the commands' root can connect to.
func TestSuite(t *testing.T) {
	suite(t, func(c plain.Config) plain.Config { return c })
}

// It does so reached over one stream that is its standard input and output.
func TestSuiteOverOneStream(t *testing.T) {
	suite(t, func(c plain.Config) plain.Config { c.Stdio = true; return c })
}

func suite(t *testing.T, by func(plain.Config) plain.Config) {
	agenttest.Run(t, func(t *testing.T) *agent.Client {
		return start(t, by(plain.Config{UID: 1000, GID: 1000, Root: true, Key: handshake.NewKey()}), syscall.CLONE_NEWPID).client
	}, agenttest.Options{HasRoot: true, IsPID1: true, Reaps: !kept.Works(), HasGroups: fork.HasKeepers, OwnRoot: true, Unprivileged: true})
}

func TestWhatItLacksIsTold(t *testing.T) {
	always := []string{wire.LackFilter, wire.LackOOMCause, wire.LackReadOnlySystem}
	if !fork.HasKeepers {
		t.Skip("keepers are written for amd64 alone")
	}
	for name, tt := range map[string]struct {
		config plain.Config
		flags  uintptr
		want   []string
	}{
		"AsProcess1":     {plain.Config{UID: 1000, GID: 1000, Root: true, Key: handshake.NewKey()}, syscall.CLONE_NEWPID, []string{wire.LackPrivateLog}},
		"WithoutRoot":    {plain.Config{UID: 1000, GID: 1000}, syscall.CLONE_NEWPID, []string{wire.LackRoot}},
		"AsAnotherChild": {plain.Config{UID: 1000, GID: 1000}, 0, []string{wire.LackRoot}},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, tt.config, tt.flags)
			info, err := b.client.Ping(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got, want := slices.Sorted(maps.Keys(info.Lacks)), slices.Sorted(slices.Values(append(tt.want, always...)))
			if !slices.Equal(got, want) {
				t.Errorf("the agent lacks %v, want %v", got, want)
			}
			if (info.PID == 1) != (tt.flags != 0) {
				t.Errorf("it is process %d", info.PID)
			}
			for what, why := range info.Lacks {
				if why == "" {
					t.Errorf("%s has no reason", what)
				}
			}
		})
	}
}

// What the user runs gets at neither socket, logs nor what the agent was told.
func TestTheUserDoesNotReachTheAgent(t *testing.T) {
	b := start(t, plain.Config{UID: 1000, GID: 1000}, syscall.CLONE_NEWPID)
	if _, err := os.Lstat(b.path("config.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the configuration is still there (%v)", err)
	}
	const attack = `import os, socket
s = socket.socket(socket.AF_UNIX)
for what, do in {
    'connect': lambda: s.connect('/agent/socket'),
    'logs': lambda: os.listdir('/agent/log'),
    'memory': lambda: open('/proc/1/mem'),
    'descriptors': lambda: os.listdir('/proc/1/fd'),
    'system': lambda: open('/usr/bin/new', 'w'),
    'program': lambda: open('/agent/sandpit-agent', 'r+b'),
    'signal': lambda: os.kill(1, 9),
}.items():
    try: do(); print(what, 'works')
    except OSError as e: print(what, 'is refused')`
	got := run(t, b.client, agent.Command{Argv: []string{"python3", "-c", attack}})
	if strings.Contains(got, "works") || strings.Count(got, "is refused") != 7 {
		t.Errorf("what the user tried:\n%s", got)
	}
}

// What is not valid is said, and the file is gone all the same: it may say what nobody else is to know.
func TestConfigurationsThatAreNotValid(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"NoJSON":        {"socket=/s", "is not valid"},
		"AnUnknownWord": {`{"sock": "/s"}`, `unknown field "sock"`},
		"Nowhere":       {`{"log": "/l", "uid": 1000}`, `neither socket, address nor stdio`},
		"ASocketNearby": {`{"socket": "s", "log": "/l", "uid": 1000}`, `socket: "s" is not an absolute path`},
		"AShortKey":     {`{"socket": "/s", "log": "/l", "uid": 1000, "key": "c2hvcnQ="}`, `the key has 5 bytes, not 32`},
		"NotAKey":       {`{"socket": "/s", "log": "/l", "uid": 1000, "key": "%"}`, `the key is not base64`},
		"AnOpenAddress": {`{"address": "127.0.0.1:0", "log": "/l", "uid": 1000}`, `key: there is none`},
		"AnOpenStream":  {`{"stdio": true, "log": "/l", "uid": 1000}`, `key: there is none`},
		"RootAtADoor":   {`{"socket": "/s", "log": "/l", "uid": 1000, "root": true}`, `key: there is none`},
		"ALogNearby":    {`{"socket": "/s", "log": "l", "uid": 1000}`, `log: "l" is not an absolute path`},
		"RootAsTheUser": {`{"socket": "/s", "log": "/l"}`, "uid: commands run as root only"},
		"TooLong":       {strings.Repeat(" ", 65<<10), "more than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.json")
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := plain.Serve(t.Context(), file); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the file is still there (%v)", err)
			}
		})
	}
}
