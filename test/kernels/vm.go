// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"sandpit.dev/test/kernels/told"
)

// Bounds of a machine.
const (
	bootWithin = 8 * time.Minute // emulated, on a busy host
	kvmWithin  = time.Minute
	boots      = 3 // an emulator may crash a kernel at its start, by itself
)

// Ways to run a machine's processor.
const (
	hardware = "kvm"
	// emulated leaves out cmpxchg16b: QEMU 7 emulates it so that Linux 6.12 dies of it.
	emulated = "tcg,thread=multi"
)

// machines runs checks in virtual machines, one at a time.
type machines struct {
	cache *cache
	limit time.Duration
	accel string
}

// errNoBoot: the machine ended, or was ended, before anything ran inside.
var errNoBoot = errors.New("the machine did not boot")

// accelerator is the hardware's where a machine really boots with it, which /dev/kvm alone
// does not promise in a machine that is virtual itself.
func (c *cache) accelerator(k kernel) string {
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return emulated
	}
	_ = f.Close()
	m := machines{cache: c, accel: hardware}
	ctx, cancel := context.WithTimeout(c.ctx, kvmWithin)
	defer cancel()
	booted := false
	_ = m.run(ctx, k, "kvm-"+k.release, func(r told.Result) {
		booted = booted || r.Check == told.Begin
		cancel()
	})
	if booted {
		return hardware
	}
	return emulated
}

// check boots a kernel and gives what came of the checks, as many as there were.
func (m *machines) check(k kernel, plan told.Plan) (results []told.Result, err error) {
	for range boots {
		m.cache.say("Linux %s boots; its console is in %s", k.release, m.log(k.release))
		results, err = m.once(k, plan)
		if !errors.Is(err, errNoBoot) || m.cache.ctx.Err() != nil {
			break
		}
	}
	return results, err
}

func (m *machines) once(k kernel, plan told.Plan) (results []told.Result, err error) {
	ctx, cancel := context.WithTimeout(m.cache.ctx, m.limit)
	defer cancel()
	boot := time.AfterFunc(bootWithin, cancel)
	defer boot.Stop()
	begun, ended := false, false
	err = m.run(ctx, k, k.release, func(r told.Result) {
		switch r.Check {
		case told.Begin:
			begun = boot.Stop()
		case told.End:
			ended = true
		default:
			results = append(results, r)
			m.cache.say("Linux %s: %s %s (%.0fs)", k.release, r.Check, verdict(r.OK), r.Seconds)
		}
	})
	switch {
	case !begun:
		return nil, errNoBoot
	case ended:
		return results, nil
	case ctx.Err() != nil && m.cache.ctx.Err() == nil:
		return results, fmt.Errorf("it took longer than %s", m.limit)
	case err != nil:
		return results, err
	}
	return results, errors.New("the machine ended too soon; see its console")
}

func (m *machines) log(name string) string { return m.cache.path("logs", name+".log") }

// run boots a kernel, calls tell for each result, and returns when the machine is off.
// The disks stay as they are: what the machine writes goes to files without names.
func (m *machines) run(ctx context.Context, k kernel, name string, tell func(told.Result)) error {
	image, err := k.image()
	if err != nil {
		return err
	}
	log, err := os.Create(m.log(name))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cpu := "max"
	if m.accel != hardware {
		cpu = "max,-cx16"
	}
	args := []string{
		"-accel", m.accel, "-cpu", cpu, "-smp", "2", "-m", "4096", "-display", "none", "-serial", "stdio", "-monitor", "none",
		"-no-reboot", "-net", "none", "-kernel", image, "-initrd", m.cache.initrd(k),
		"-append", "root=/dev/vda rw console=ttyS0 quiet loglevel=1 panic=-1 systemd.show_status=false",
	}
	for _, disk := range []string{m.cache.disk(), m.cache.payload()} {
		args = append(args, "-drive", "file="+disk+",if=virtio,format=raw,cache=unsafe,snapshot=on")
	}
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", args...)
	cmd.Env = append(slices.Clone(os.Environ()), "TMPDIR="+m.cache.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 10 * time.Second
	var errs bytes.Buffer
	cmd.Stderr = &errs
	console, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	read(io.TeeReader(console, log), tell)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(errs.Bytes()))
	}
	return nil
}

// read calls tell for each result on a console, until it ends.
func read(console io.Reader, tell func(told.Result)) {
	lines := bufio.NewReaderSize(console, 1<<20)
	for {
		line, err := lines.ReadSlice('\n') // what is longer is no result
		if r, ok := told.Read(line); ok {
			tell(r)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}
