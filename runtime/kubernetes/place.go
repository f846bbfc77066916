// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"encoding/json"
	"errors"
	"io/fs"

	"k8s.io/apimachinery/pkg/types"

	"sandpit.dev/agent/handshake"
	"sandpit.dev/fault"
)

// Files of a sandbox's directory.
const (
	keyFile     = "key"     // of the agent of a pod
	stoppedFile = "stopped" // the server took it down
)

// kept is what keyFile has.
type kept struct {
	Pod types.UID      `json:"pod"`
	Key *handshake.Key `json:"key"`
}

// keep keeps the key of a pod's agent, so that the next server has it.
func (i *Instance) keep(pod types.UID, key *handshake.Key) error {
	b, err := json.Marshal(kept{pod, key})
	if err == nil {
		err = i.mkdir()
	}
	const fresh = keyFile + ".new"
	if err == nil {
		err = i.d.instances.WriteFile(string(i.id)+"/"+fresh, b, 0o600)
	}
	if err == nil {
		err = i.d.instances.Rename(string(i.id)+"/"+fresh, string(i.id)+"/"+keyFile)
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the key of sandbox %s's agent cannot be kept", i.id)
	}
	return nil
}

// keptKey returns the key of a pod's agent.
func (i *Instance) keptKey(pod types.UID) (*handshake.Key, error) {
	b, err := i.d.instances.ReadFile(string(i.id) + "/" + keyFile)
	if err != nil {
		return nil, err
	}
	var k kept
	if err := json.Unmarshal(b, &k); err != nil {
		return nil, err
	}
	if k.Pod != pod || k.Key == nil {
		return nil, errNoKey
	}
	return k.Key, nil
}

func (i *Instance) mkdir() error {
	err := i.d.instances.Mkdir(string(i.id), 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// has reports whether a file is in its directory.
func (i *Instance) has(name string) bool {
	_, err := i.d.instances.Lstat(string(i.id) + "/" + name)
	return err == nil
}

// mark writes an empty file into its directory. Where it cannot be, the next server says otherwise why the sandbox is down.
func (i *Instance) mark(name string) {
	err := i.mkdir()
	if err == nil {
		err = i.d.instances.WriteFile(string(i.id)+"/"+name, nil, 0o600)
	}
	if err != nil {
		i.d.log.Warn("that a sandbox was stopped is not kept", "sandbox", i.id, "error", err)
	}
}

// unmark removes what mark wrote.
func (i *Instance) unmark(name string) error {
	if err := i.d.instances.RemoveAll(string(i.id) + "/" + name); err != nil {
		return fault.Wrap(fault.Internal, err, "what is noted of sandbox %s cannot be removed", i.id)
	}
	return nil
}

// clear removes what earlier starts left in its directory.
func (i *Instance) clear() error {
	for _, name := range []string{stoppedFile, keyFile} {
		if err := i.d.instances.RemoveAll(string(i.id) + "/" + name); err != nil {
			return fault.Wrap(fault.Internal, err, "what an earlier start of sandbox %s left cannot be removed", i.id)
		}
	}
	return nil
}
