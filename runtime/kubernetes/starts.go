// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sandpit.dev/fault"
)

// Starts of a disk have numbers. The agent keeps that of its start on the disk, and ends itself when it finds a later one: where nodes share disks, that of a
// pod whose node was lost may go on, and nobody else can end it.

// Files of a sandbox's directory.
const (
	startFile = "start" // the number of the last
	lostFile  = "lost"  // the last pod's node was lost
)

// agentStart is what an agent reads of it, see package agent/boot/plain.
type agentStart struct {
	Number int64 `json:"number"`
	Wait   bool  `json:"wait,omitempty"` // until one that was lost has ended itself
}

// nextStart returns the number of a start that begins, which is greater than all before, also where clocks go back or the directory is new.
func (i *Instance) nextStart() (int64, error) {
	number := max(i.lastStart()+1, time.Now().UnixMilli())
	return number, i.keepStart(number)
}

func (i *Instance) lastStart() int64 {
	b, err := i.d.instances.ReadFile(string(i.id) + "/" + startFile)
	if err != nil {
		return 0
	}
	number, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return 0
	}
	return number
}

func (i *Instance) keepStart(number int64) error {
	const fresh = startFile + ".new"
	err := i.mkdir()
	if err == nil {
		err = i.d.instances.WriteFile(string(i.id)+"/"+fresh, []byte(strconv.FormatInt(number, 10)), 0o600)
	}
	if err == nil {
		err = i.d.instances.Rename(string(i.id)+"/"+fresh, string(i.id)+"/"+startFile)
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the number of a start of sandbox %s cannot be kept", i.id)
	}
	return nil
}

// number gives a pod the number of its start.
func (i *Instance) number(p *corev1.Pod) error {
	c := &p.Spec.Containers[0]
	var config agentConfig
	if err := json.Unmarshal([]byte(c.Args[1]), &config); err != nil {
		return err
	}
	number, err := i.nextStart()
	if err != nil {
		return err
	}
	config.Start = &agentStart{Number: number, Wait: i.has(lostFile)}
	text, err := json.Marshal(config)
	c.Args[1] = string(text)
	return err
}

// later returns the error of an agent that says, in the place of its public half, that the disk has a later start; nil: it says something else. The next
// start has a number that is greater.
func (i *Instance) later(line string) error {
	const says = "a later start has the disk: "
	text, ok := strings.CutPrefix(line, says)
	if !ok {
		return nil
	}
	if number, err := strconv.ParseInt(text, 10, 64); err == nil && number < 1<<62 {
		if err := i.keepStart(number); err != nil {
			return err
		}
	}
	return fault.New(fault.Unavailable, "the disk of sandbox %s says that it was started later than now", i.id).WithRemedy("start it again: that comes after it")
}
