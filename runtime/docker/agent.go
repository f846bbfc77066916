// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"sandpit.dev/agent/handshake"
	"sandpit.dev/fault"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
)

// Where the agent's things are in a container.
const (
	insideDir     = "/.sandpit"
	insideAgent   = insideDir + "/agent"           // the volume
	insideProgram = insideAgent + "/sandpit-agent" // in the volume
	insideRun     = insideDir + "/run"             // the directory of the server's
	insideLog     = insideDir + "/log"             // of processes, on the container\'s own layer
	insideConfig  = insideRun + "/" + configFile
)

// Files of an instance's directory that is mounted, and of the one around it that is not.
const (
	runDir      = "run"
	configFile  = "config.json"
	socketFile  = "agent.sock"
	keyFile     = "key"     // what connections to its agent begin with
	stoppedFile = "stopped" // the server took it down
	pausedFile  = "paused"  // Pause froze it
	pausingFile = "pausing" // its agent's clocks may stand still though it is not paused
)

// completeFile is the last in the volume: without it the volume is half filled.
const completeFile = "complete"

// undoTimeout bounds taking back what was half made, whatever became of the caller.
const undoTimeout = 2 * time.Minute

// volumeName is that of this build's agent: it never has another content.
func (d *Driver) volumeName() string { return "sandpit-agent-" + d.digest[:16] }

// fillAgent has the Engine's volume with the agent there. image is any that the Engine has: a
// container has to be of one, and this never runs.
func (d *Driver) fillAgent(ctx context.Context, image string) (err error) {
	name := d.volumeName()
	labels := map[string]string{labelRole: roleAgent}
	if _, err := d.engine.CreateVolume(ctx, name, labels); err != nil {
		return err
	}
	ctx, cancel := d.finishing(ctx, undoTimeout)
	defer cancel()
	helper, err := d.engine.CreateContainer(ctx, engineapi.Container{
		Name:   "sandpit-" + d.namespace + "-agent-" + rand.Text(),
		Config: engineapi.Config{Image: image, Cmd: []string{"none"}, Labels: map[string]string{labelServer: d.namespace, labelRole: roleAgent}},
		Host: engineapi.HostConfig{
			NetworkMode: "none", CapDrop: []string{"ALL"}, Mounts: []engineapi.Mount{{Type: "volume", Source: name, Target: insideAgent}},
		},
	})
	if err != nil {
		return err
	}
	defer func() {
		undo, done := d.finishing(ctx, undoTimeout)
		defer done()
		err = errors.Join(err, d.engine.RemoveContainer(undo, helper))
	}()
	if _, err := d.engine.StatArchive(ctx, helper, insideAgent+"/"+completeFile); !fault.Is(err, fault.NotFound) {
		return err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range []struct {
		name string
		mode int64
		data []byte
	}{{"sandpit-agent", 0o755, d.program}, {completeFile, 0o444, []byte(d.digest)}} {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: time.Unix(0, 0)}); err != nil {
			return err
		}
		if _, err := w.Write(f.data); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return d.engine.PutArchive(ctx, helper, insideAgent, &b)
}

// clean removes, once, what an earlier server left on the Engine. Nothing is made there before that: it would be
// taken for such, where the Engine is there only after the server.
func (d *Driver) clean(ctx context.Context) error {
	return d.swept.do(ctx, func() error { return d.sweep(ctx) })
}

// sweep removes and finishes what an earlier server which ended on its way left half done: containers
// that filled a volume or took another's place, images without a name.
func (d *Driver) sweep(ctx context.Context) error {
	for _, role := range []string{roleAgent, roleStep} {
		list, err := d.engine.ListContainers(ctx, d.ours(), labelRole+"="+role)
		if err != nil {
			return err
		}
		for _, c := range list {
			if role == roleStep && (c.Labels[labelOf] == "" || c.Labels[labelOf] != c.ImageID) {
				continue // of an image that somebody made of one
			}
			if err := d.removeContainer(ctx, c.ID); err != nil {
				return err
			}
		}
	}
	if err := d.sweepReaders(ctx); err != nil {
		return err
	}
	if err := d.sweepReplaced(ctx); err != nil {
		return err
	}
	if err := d.sweepImages(ctx); err != nil {
		return err
	}
	if err := d.sweepVolumes(ctx); err != nil {
		return err
	}
	return d.sweepLayers(ctx)
}

// agentConfig is what the agent reads, see package agent/boot/plain.
type agentConfig struct {
	Socket      string         `json:"socket"`
	Key         *handshake.Key `json:"key"`
	Log         string         `json:"log"`
	UID         uint32         `json:"uid"`
	GID         uint32         `json:"gid"`
	Root        bool           `json:"root"`
	Home        string         `json:"home"`
	MaxLogBytes int64          `json:"max_log_bytes,omitempty"`
	Threads     int            `json:"threads"`
	OpenFiles   uint32         `json:"open_files"`
	FewSockets  bool           `json:"few_sockets"`
}

// agentThreads are the agent's in a container's limit of processes, on top of the sandbox's: commands
// that take all they can get leave it these.
const agentThreads = 32

// How many descriptors the agent has at most, and each process of a command: what sockets hold is in no
// limit of memory.
const (
	agentFiles   = 16384
	commandFiles = 4096
)

// userID is that of commands inside, and userHome their home.
const (
	userID   = 1000
	userHome = "/home/sandbox"
)

// configOf returns the agent's configuration.
func configOf(l sandbox.Limits, key *handshake.Key) ([]byte, error) {
	return json.Marshal(agentConfig{
		Socket: insideRun + "/" + socketFile, Key: key, Log: insideLog, UID: userID, GID: userID, Root: true, Home: userHome, MaxLogBytes: l.LogBytes(), Threads: agentThreads, OpenFiles: commandFiles,
		FewSockets: true,
	})
}

// agentEnv keeps the agent small: one thread of Go code, and a heap that is collected early.
func agentEnv() []string {
	return []string{"GOMAXPROCS=1", "GOGC=25", "GOMEMLIMIT=12MiB", "GODEBUG=madvdontneed=1,containermaxprocs=0,updatemaxprocs=0", "PATH=/usr/local/bin:/usr/bin:/bin", "TZ=UTC"}
}
