// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"

	"sandpit.dev/agent/handshake"
	"sandpit.dev/agent/mux"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
)

// prepare writes what the agent reads, and removes what an earlier life left: what lies there by
// other names is the container's own.
func (i *Instance) prepare(ctx context.Context, spec runtime.Spec) error {
	key := handshake.NewKey()
	b, err := configOf(spec.Limits, key)
	if err != nil {
		return err
	}
	kept, err := key.MarshalText()
	if err != nil {
		return err
	}
	dir, err := i.d.instances.OpenRoot(string(i.id))
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the directory of sandbox %s cannot be opened", i.id)
	}
	defer func() { _ = dir.Close() }()
	for _, name := range []string{stoppedFile, pausedFile, pausingFile, keyFile, runDir + "/" + socketFile, runDir + "/" + configFile} {
		if err := dir.RemoveAll(name); err != nil {
			return fault.Wrap(fault.Internal, err, "what an earlier start of sandbox %s left cannot be removed", i.id)
		}
	}
	err = dir.WriteFile(keyFile, kept, 0o600)
	if err == nil && !i.streams() {
		err = i.giveConfig(ctx, dir, b)
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the configuration of sandbox %s's agent cannot be written", i.id)
	}
	if i.streams() {
		if err := i.sendConfig(ctx, b); err != nil {
			return i.orFull(ctx, spec.Limits, err)
		}
	}
	i.setKey(key)
	return nil
}

// giveConfig writes what the agent reads, and removes, as the container's root.
func (i *Instance) giveConfig(ctx context.Context, dir *os.Root, config []byte) error {
	root, err := i.d.containerRoot(ctx)
	if err != nil {
		return err
	}
	const name = runDir + "/" + configFile
	if err := dir.WriteFile(name, config, 0o600); err != nil {
		return err
	}
	return give(dir, name, root)
}

// sendConfig puts what the agent reads into the container.
func (i *Instance) sendConfig(ctx context.Context, config []byte) error {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeDir, Name: strings.TrimPrefix(insideDir, "/") + "/", Mode: 0o755},
		{Typeflag: tar.TypeDir, Name: strings.TrimPrefix(insideRun, "/") + "/", Mode: 0o700},
		{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(insideConfig, "/"), Mode: 0o600, Size: int64(len(config))},
	} {
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
	}
	if _, err := w.Write(config); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return i.d.engine.PutArchive(ctx, i.its(), "/", &b)
}

// setKey takes the key of the agent of this life.
func (i *Instance) setKey(key *handshake.Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.key = key
	if !i.stream {
		return
	}
	i.calls = mux.NewDialer(i.streamsTo(i.container, key, handshake.ManyCalls))
}

// streamsTo returns what opens streams to the agent in a container.
func (i *Instance) streamsTo(container string, key *handshake.Key, what handshake.Carries) func(context.Context) (net.Conn, error) {
	return (&handshake.Dialer{Key: key, What: what, Dial: func(ctx context.Context) (net.Conn, error) {
		return i.d.engine.Exec(ctx, container, insideProgram, "relay", insideRun+"/"+socketFile)
	}}).DialContext
}

// readKey finds the key that an earlier server gave the agent.
func (i *Instance) readKey() error {
	b, err := i.d.instances.ReadFile(string(i.id) + "/" + keyFile)
	key := new(handshake.Key)
	if err == nil {
		err = key.UnmarshalText(b)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "the key of sandbox %s's agent cannot be read", i.id).WithRemedy("stop the sandbox and start it again")
	}
	i.setKey(key)
	return nil
}

// mark puts something down about the instance for the next server. That it failed is no reason to
// fail: the next server knows less then.
func (i *Instance) mark(name string) {
	if err := i.d.instances.WriteFile(string(i.id)+"/"+name, nil, 0o600); err != nil {
		i.d.log.Warn("the next server will not know of a sandbox", "sandbox", i.id, "what", name, "error", err)
	}
}

func (i *Instance) unmark(name string) error {
	if err := i.d.instances.Remove(string(i.id) + "/" + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (i *Instance) marked(name string) bool {
	_, err := i.d.instances.Lstat(string(i.id) + "/" + name)
	return err == nil
}
