// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/handshake"
	"sandpit.dev/agent/serve"
	"sandpit.dev/agent/server"
	"sandpit.dev/agent/server/keeper"
	"sandpit.dev/agent/server/kept"
	"sandpit.dev/agent/server/lost"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/agent/traffic"
	"sandpit.dev/agent/wire"
)

// Config is what the agent is told, as JSON in a file that it removes, or as its argument itself.
type Config struct {
	// Where it serves: any of these, and one at least. With Stdio alone it ends when its input does.
	Socket  string `json:"socket,omitempty"`  // absolute path of a unix socket; what is there is replaced
	Address string `json:"address,omitempty"` // of TCP: IP:PORT
	Stdio   bool   `json:"stdio,omitempty"`   // standard input and output

	// Key is what every connection begins with, see package handshake. It may be missing where only a
	// socket is served on, and no command runs as a user who can connect to that.
	Key *handshake.Key `json:"key,omitempty"`
	// Server is in the place of Key where others may read the configuration, as of one in an argument: the public half
	// of a pair of the server's. The agent makes one, too, and tells its public half in a line on standard output, see [handshake.ParseLine].
	Server *handshake.Public `json:"server,omitempty"`

	Log string `json:"log"` // absolute path of the directory for logs of processes, made if it is missing

	UID uint32 `json:"uid"` // of commands and files by default; not root's
	GID uint32 `json:"gid"`
	// Root lets commands run as root, which is the container's own. They can reach the logs, and
	// whatever the agent serves on: it has to have a key.
	Root bool `json:"root,omitempty"`

	Workspace string `json:"workspace,omitempty"` // "": /workspace
	// Home is that of the user, made and given to it where there is none; "": the workspace.
	Home string `json:"home,omitempty"`
	// Disk are directories of a disk that may be new. Those that are root's and empty become the user's, but for one that homes
	// are in, and everybody may look into each.
	Disk []string `json:"disk,omitempty"`
	// DiskAt is the directory that those are below, too, where volumes are mounted on them or in them: there is the disk without these.
	DiskAt      string `json:"disk_at,omitempty"`
	MaxLogBytes int64  `json:"max_log_bytes,omitempty"` // of all logs together; 0: 256 MiB
	OpenFiles   uint32 `json:"open_files,omitempty"`    // of each process of a command; 0: as the agent
	// Threads are made at the start and kept, where commands could leave no process over: Go's runtime
	// ends the agent when it cannot have a thread for a system call that takes long.
	Threads int `json:"threads,omitempty"`
	// FewSockets leaves commands the kinds of sockets that programs use, none of which goes past the
	// container's network. The agent may add to its filters: it has no_new_privs, or CAP_SYS_ADMIN.
	FewSockets bool `json:"few_sockets,omitempty"`
	// Overlay is a directory of a disk that keeps what is changed of the root: the agent, which may mount then, makes an overlay over
	// the container's root the root, and begins again without the right to. It takes Server.
	Overlay string `json:"overlay,omitempty"`
	// FreshOverlay has what that directory keeps be removed first.
	FreshOverlay bool `json:"fresh_overlay,omitempty"`
	// Start is of a disk that another agent may be begun on while this one goes on.
	Start   *Start `json:"start,omitempty"`
	Version string `json:"version,omitempty"` // told by a ping
}

// maxConfig bounds the file, in bytes.
const maxConfig = 64 << 10

// Serve reads and removes the file, or takes the text of one that begins with a brace, and serves as long as the process
// lives, or until ctx is done. It is called once, by the first thread, locked to it, before anything else runs: see
// [server.BecomeInit].
func Serve(ctx context.Context, config string) error {
	c, err := configOf(config)
	if err != nil {
		return err
	}
	if c.Start != nil {
		if err := c.Start.note(c.Log); err != nil {
			if later, ok := errors.AsType[errLater](err); ok {
				fmt.Println(later.Error())
			}
			return err
		}
		c.Start.Wait = false
	}
	if c.Overlay != "" {
		return c.overlay()
	}
	first := os.Getpid() == 1
	if first {
		if err := server.BecomeInit(); err != nil {
			return err
		}
	}
	if err := protect(); err != nil {
		return err
	}
	if c.FewSockets {
		if err := limitSockets(); err != nil {
			return err
		}
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	opts, err := c.options(first)
	if err != nil {
		return err
	}
	opts.End = end
	listeners, err := c.listen()
	if err != nil {
		return err
	}
	var stream net.Conn
	if c.Stdio {
		if stream, err = serve.Stdio(); err != nil {
			return err
		}
	}
	if c.Server != nil {
		if err := c.agree(); err != nil {
			return err
		}
	}
	makeThreads(c.Threads)
	var watched sync.WaitGroup
	if c.Start != nil {
		watched.Go(func() { c.Start.watch(ctx, c.Log, end) })
	}
	defer watched.Wait()
	defer end()
	s := server.New(opts)
	ended := make(chan error, 1)
	go func() { ended <- c.serve(ctx, s, listeners, stream) }()
	err = <-ended // this thread does nothing from now on
	return errors.Join(err, s.Close(), opts.Log.Close())
}

// serve answers what comes by any of these ways, until ctx is done, one fails, or none is left.
func (c *Config) serve(ctx context.Context, s *server.Server, listeners []net.Listener, stream net.Conn) error {
	if c.Key == nil {
		return s.Serve(ctx, listeners[0])
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	door := serve.New(c.Key)
	carrier := traffic.NewAgent()
	carrier.Reached = c.Address != ""
	door.Traffic = carrier.Carry
	ended := make(chan error)
	ways := 1
	go func() { ended <- s.Serve(ctx, door) }()
	for _, l := range listeners {
		ways++
		go func() { ended <- door.Run(ctx, l) }()
	}
	if stream != nil {
		ways++
		go func() {
			_ = door.Carry(ctx, stream) // how it ended is no matter
			if len(listeners) == 0 {
				cancel()
			}
			ended <- nil
		}()
	}
	var first error
	for range ways {
		if err := <-ended; err != nil {
			first = cmp.Or(first, err)
			cancel()
		}
	}
	return first
}

// configOf returns what a text says, or the file that it is the path of.
func configOf(config string) (*Config, error) {
	if !strings.HasPrefix(config, "{") {
		return read(config)
	}
	c, err := parse([]byte(config))
	if err == nil && c.Key != nil {
		err = errors.New("the configuration is not valid: key: others can read an argument; give server, or a file")
	}
	return c, err
}

// agree makes the key of the server's public half, and tells the agent's own.
func (c *Config) agree() error {
	private, public, err := handshake.NewPair()
	if err == nil {
		c.Key, err = private.AgreeAsAgent(*c.Server)
	}
	if err != nil {
		return fmt.Errorf("agree on a key: %w", err)
	}
	_, err = fmt.Println(public.Line())
	return err
}

// read reads the file and removes it, whatever is in it.
func read(file string) (*Config, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("open the configuration: %w", err)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err := errors.Join(err, f.Close(), os.Remove(file)); err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	if len(b) > maxConfig {
		return nil, fmt.Errorf("the configuration has more than %d bytes", maxConfig)
	}
	return parse(b)
}

// parse reads a configuration and checks it.
func parse(b []byte) (*Config, error) {
	var c Config
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return nil, fmt.Errorf("the configuration is not valid: %w", err)
	}
	for name, path := range map[string]string{"socket": c.Socket, "log": c.Log, "home": c.Home, "disk_at": c.DiskAt} {
		if !filepath.IsAbs(path) && (name == "log" || path != "") {
			return nil, fmt.Errorf("the configuration is not valid: %s: %q is not an absolute path", name, path)
		}
	}
	if c.Socket == "" && c.Address == "" && !c.Stdio {
		return nil, errors.New("the configuration is not valid: neither socket, address nor stdio says where to serve")
	}
	if c.Threads < 0 || c.Threads > maxThreads {
		return nil, fmt.Errorf("the configuration is not valid: threads: %d is not 0 to %d", c.Threads, maxThreads)
	}
	switch own := uint32(os.Geteuid()); { //nolint:gosec // a user id
	case c.UID == 0:
		return nil, errors.New("the configuration is not valid: uid: commands run as root only where they ask for it")
	case own != 0 && (c.UID != own || c.Root):
		return nil, fmt.Errorf("the agent is user %d, not root: it cannot run commands as another user", own)
	case c.Key != nil && c.Server != nil:
		return nil, errors.New("the configuration is not valid: key and server: one of them is enough")
	case c.Key == nil && c.Server == nil && (c.Address != "" || c.Stdio || c.Root || own != 0):
		return nil, errors.New("the configuration is not valid: key: there is none, and others than the server may reach what the agent serves on")
	}
	return &c, c.checkOverlay()
}

// protect sets what all commands inherit, and keeps the agent's memory and descriptors to itself.
func protect() error {
	unix.Umask(0o022)
	// A limit of 1, and only that, keeps the host's core_pattern program from starting; see core(5).
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}); err != nil {
		return fmt.Errorf("forbid core dumps: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("become undumpable: %w", err)
	}
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keep descriptors from commands: %w", err)
	}
	return nil
}

func (c *Config) options(first bool) (server.Options, error) {
	if err := os.MkdirAll(c.Log, 0o700); err != nil {
		return server.Options{}, fmt.Errorf("make the directory of logs: %w", err)
	}
	log, err := os.OpenFile(c.Log, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err == nil {
		err = log.Chmod(0o700)
	}
	if err != nil {
		return server.Options{}, fmt.Errorf("open the directory of logs: %w", err)
	}
	workspace := c.Workspace
	if workspace == "" {
		workspace = "/workspace"
	}
	user := view.Identity{Name: "sandbox", UID: int(c.UID), GID: int(c.GID), Home: cmp.Or(c.Home, workspace)}
	if os.Geteuid() == 0 {
		user.Credential = &syscall.Credential{Uid: c.UID, Gid: c.GID}
	}
	c.beginDisk()
	v := view.Plain(user)
	if err := v.(view.Starter).Start(); err != nil {
		return server.Options{}, fmt.Errorf("act as the user of commands: %w", err)
	}
	o := server.Options{
		User: v, Log: log, Workspace: workspace,
		Init: first, Reap: first && !kept.Works(), OpenFiles: c.OpenFiles,
		MaxLogBytes: c.MaxLogBytes, Version: c.Version, Score: commandScore, Threads: c.Threads,
		OOMKills: oomKills(), PidsRefusals: pidsRefusals(),
		Lacks: map[string]string{
			wire.LackOOMCause:       "the agent cannot read the counters of its limits: what runs out of memory is told as killed by a signal",
			wire.LackReadOnlySystem: "the agent cannot mount: the system's files are kept from the user by their owner and mode alone",
			wire.LackFilter:         "the agent filters no system calls: what commands may ask of the kernel is for the container's maker to say",
		},
	}
	if len(c.Disk) > 0 {
		o.Disk = &server.Disk{Dirs: c.Disk, At: c.DiskAt, Begin: c.beginDisk}
		began := time.Now()
		o.Lost = func() wire.Lost { return lost.Find(began) }
	}
	if keeper.Works() {
		o.Groups = keeper.Groups()
	} else {
		o.Lacks[wire.LackKillTree] = "the agent keeps processes together on amd64 alone: one that forks twice and leaves its session outlives its command"
	}
	if o.OOMKills != nil {
		delete(o.Lacks, wire.LackOOMCause)
	}
	switch {
	case c.Root:
		o.Root = view.Plain(view.Identity{Name: "root", Home: "/root"})
		o.Lacks[wire.LackPrivateLog] = "commands that run as root reach the agent's logs"
	case os.Geteuid() != 0:
		o.Lacks[wire.LackRoot] = "the agent does not run as root"
		o.Lacks[wire.LackPrivateLog] = "commands run as the agent's own user, and reach its logs"
	case c.Key == nil && c.Server == nil:
		o.Lacks[wire.LackRoot] = "commands that run as root would reach the agent's socket, and it was given no key"
	default:
		o.Lacks[wire.LackRoot] = "the agent was not told to run commands as root"
	}
	if !first && o.Groups == nil {
		o.Lacks[wire.LackInit] = "the agent is not process 1: what commands leave behind is another's to reap"
	}
	return o, nil
}

// beginDisk makes what they should be of directories of a disk that is new.
func (c *Config) beginDisk() {
	for _, dir := range c.Disk {
		_ = c.begin(dir) // as it is with the home
	}
	if c.Home != "" {
		_ = c.makeHome() // what is in the way is the sandbox's own, which lacks a home then and nothing else
	}
}

// listen makes what it serves on.
func (c *Config) listen() (all []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range all {
				_ = l.Close()
			}
		}
	}()
	if c.Socket != "" {
		l, err := c.listenUnix()
		if err != nil {
			return all, err
		}
		all = append(all, l)
	}
	if c.Address != "" {
		addr, err := netip.ParseAddrPort(c.Address)
		if err != nil {
			return all, fmt.Errorf("the configuration is not valid: address: %w", err)
		}
		// net.Listen would look names up, which makes the agent larger by a tenth.
		l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
		if err != nil {
			return all, fmt.Errorf("listen: %w", err)
		}
		all = append(all, l)
	}
	return all, nil
}

// listenUnix makes the socket, which the agent's own user alone may connect to. It has its name once
// it can be connected to, and replaces what an agent before left there.
func (c *Config) listenUnix() (net.Listener, error) {
	path := c.Socket + ".new"
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("replace the socket: %w", err)
	}
	before := unix.Umask(0o177)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	unix.Umask(before)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	l.SetUnlinkOnClose(false)
	if err := os.Rename(path, c.Socket); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("name the socket: %w", err)
	}
	return l, nil
}
