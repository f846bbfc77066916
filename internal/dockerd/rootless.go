// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dockerd

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// An Engine that is not root runs in a user namespace, in which nobody is a user of the host's: as rootlesskit has it, with the range of ids that
// newuidmap gives. Its own root is the first of them.

// rootlessPrograms is where the Engine's programs are for it, which cannot enter root's directories.
const rootlessPrograms = "/opt/engine"

// asNobody has a command of Docker's run so. prepare is called where its mounts are.
func asNobody(cmd *exec.Cmd, o Options) (prepare func() error) {
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: mappedFirst, Size: mappedCount}}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS, UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true, Credential: &syscall.Credential{},
	}
	home := filepath.Join(o.Dir, "home")
	programs := ""
	for n, arg := range cmd.Args {
		if root, found := strings.CutSuffix(arg, "/usr/sbin/dockerd"); found && root != "" {
			programs, cmd.Args[n] = root, rootlessPrograms+"/usr/sbin/dockerd"
		}
	}
	var env []string
	for _, v := range cmd.Env {
		if programs != "" {
			v = strings.ReplaceAll(v, programs, rootlessPrograms)
		}
		if list, found := strings.CutPrefix(v, "PATH="); found {
			v = "PATH=/opt/bin:" + list
		}
		env = append(env, v)
	}
	cmd.Env = append(env, "USER=somebody", "HOME="+home, "XDG_RUNTIME_DIR=/run", "XDG_DATA_HOME="+home+"/share", "XDG_CONFIG_HOME="+home+"/config", "TMPDIR=/tmp", "ROOTLESSKIT_STATE_DIR=/run/rootlesskit")
	return func() error {
		// What is lent it later comes to its namespace, too.
		err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""), os.MkdirAll(home, 0o700))
		for _, path := range []string{o.Dir, home, filepath.Join(o.Dir, "daemon.json"), "/run", "/opt"} {
			err = errors.Join(err, os.Chown(path, mappedFirst, mappedFirst))
		}
		// It asks for the program that publishes ports, and never runs it: it publishes none.
		const proxy = "/opt/bin/rootlesskit-docker-proxy"
		err = errors.Join(err, os.Mkdir(filepath.Dir(proxy), 0o755), os.WriteFile(proxy, []byte("#!/bin/sh\nexit 1\n"), 0o755))
		if err != nil || programs == "" {
			return err
		}
		return errors.Join(os.Mkdir(rootlessPrograms, 0o755), unix.Mount(programs, rootlessPrograms, "", unix.MS_BIND, ""))
	}
}
