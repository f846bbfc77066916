// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import "sandpit.dev/runtime/runtimetest"

// triedWhereMapped are tests of isolation that an Engine which maps users passes, but for otherwiseWhereMapped. Not tried are:
//   - SystemFiles: what the user owns of the system is the user's, by owner and mode.
//   - ThroughTheAgent: a container's root writes to a /dev of its own, and who starts the agent's program as a command can trace it.
//   - RacesWithTheHost, LinksUnderMasks: they read whole disks through the Engine.
//   - TheirIdsOnTheHostDiffer, ExhaustingOnesOwn…, Floods: all containers are mapped to the same users.
//   - the group Told: what programs are told is the host's.
func triedWhereMapped() []string {
	return []string{
		"CommandsRunAsTheSandboxUser", "TheSandboxRootWritesTheSystemAndTheUserSeesIt", "RootsProgramsAndHomeAreNotTheUsers", "UsualProgramsWork",
		"TheHarnessTellsSuccessFromRefusalFromMistakes", "RacesWithTheAgent", "HostFiles", "Devices", "KernelFiles", "Mounts", "StoreOfTheLayers", "ProcessOne", "OtherUser",
		"Credentials", "Namespaces", "KernelCalls", "Limits", "Sockets", "Network", "Terminals", "KnownEscapes",
		"NothingOfTheOtherCanBeReached", "TheSharedImageIsEachOnesOwn", "KillingAllThatOneSeesKillsNothingOfTheOther", "LocksAndWatchesOnDevicesAreEachOnesOwn",
	}
}

// otherwiseWhereMapped are attempts that end in another way in a container of an Engine which maps users.
func otherwiseWhereMapped() map[string]runtimetest.Otherwise {
	const (
		clone3   = "the Engine's filter says of clone3, whose flags no filter sees, that there is none"
		openat2  = "the Engine's filter has no openat2 for commands"
		ownDev   = "each container has a /dev of its own, which its root fills; the devices in it are the host's root's"
		shown    = "an Engine shows a container paths of its host, and of itself, and nothing behind them"
		readOnly = "what the kernel shows is read-only there, or nobody's, as far as it is shown"
		agent    = "root inside is the agent's user, and may end or slow it down as all else in its own sandbox; the server trusts its key alone"
		filter   = "the Engine's filter lets it through to the kernel, which does not do it, or only to the caller's own"
		dumps    = "commands may lower the limit of dumps, and a program of the host's that takes them, if there is one, then takes theirs, as of any container"
		shared   = "the devices of all containers are the host's files"
	)
	out := map[string]runtimetest.Otherwise{}
	for _, o := range []struct{ why, name, want string }{
		{clone3, "clone3 without flags works", "REFUSED ENOSYS"},
		{clone3, "clone into a user namespace by the new call", "REFUSED ENOSYS"},
		{clone3, "clone into a user namespace with all others by the new call", "REFUSED ENOSYS"},
		{clone3, "clone into the other namespaces by the new call", "REFUSED ENOSYS"},
		{clone3, "choose the number of a process", "REFUSED ENOSYS"},
		{clone3, "leave for another network", "REFUSED EPERM or REFUSED ENOSYS"},
		{clone3, "take a control file by an open directory", "REFUSED ENOSYS"},
		{shown, "find paths of the host in the lists of mounts", "/…"},
		{shown, "find paths of the host in the command line of process 1", "/.sandpit/agent/sandpit-agent…"},
		{shown, "find the agent's log of commands", "/.sandpit"},
		{shown, "name the agent's socket in the list of unix sockets", "/.sandpit/run/agent.sock.new"},
		{shown, "read the host's control group paths", "NONE or …/sandpit-test-…"},
		{shown, "read the host's mounts through process 1", "FOUND"},
		{shown, "find a container runtime's socket, a cluster's token or a service manager", "REFUSED ENOENT or MIXED …/run/systemd/private: REFUSED ENOENT, /.dockerenv: DONE, /host: REFUSED ENOENT…"},
		{ownDev, "make a device in /dev", "REFUSED EACCES or REFUSED EPERM"},
		{ownDev, "create a file in /dev", "REFUSED EACCES or DONE"},
		{ownDev, "make a directory in /dev", "REFUSED EACCES or REFUSED EEXIST"},
		{ownDev, "make a link in /dev", "REFUSED EACCES or REFUSED EEXIST"},
		{ownDev, "remove a device that all sandboxes use", "REFUSED EACCES or MIXED /dev/null: REFUSED EBUSY, /dev/zero: REFUSED EBUSY, /dev/random: REFUSED EBUSY, /dev/fd: DONE"},
		{ownDev, "rename a device that all sandboxes use", "REFUSED EACCES or REFUSED EBUSY"},
		{ownDev, "change the mode of a device that all sandboxes use", "REFUSED EPERM"},
		{ownDev, "change the owner of a device that all sandboxes use", "REFUSED EPERM"},
		{ownDev, "change the times of a device that all sandboxes use", "REFUSED EPERM"},
		{ownDev, "set an attribute of a device that all sandboxes use", "REFUSED EPERM"},
		{"no mount says nodev, and the kernel honours no device that is made in a user namespace", "have device nodes honoured where files can be made", "/, …"},
		{readOnly, "write the kernel's object tree", "REFUSED ENOENT or REFUSED EROFS"},
		{readOnly, "find a control file system that can be written", "NONE or /…"},
		{readOnly, "read kernel files that tell of the host", "EMPTY or REFUSED EACCES"},
		{readOnly, "list kernel directories that tell of the host", "EMPTY or /proc/…"},
		{readOnly, "find a release agent of any hierarchy", "NONE or /sys/fs/cgroup/…notify_on_release…"},
		{agent, "list process 1's root, working directory and descriptors", "REFUSED EACCES or MIXED /proc/1/root: REFUSED EACCES, /proc/1/cwd: REFUSED EACCES, /proc/1/fd: DONE, /proc/1/fdinfo: REFUSED EACCES, /proc/1/map_files: REFUSED EACCES"},
		{agent, "use process 1's descriptors by number", "REFUSED EACCES or REFUSED ENOENT"},
		{agent, "open process 1's files in /proc for writing", "REFUSED EACCES or MIXED /proc/1/mem: REFUSED EACCES, …"},
		{agent, "have process 1 killed first when the host's memory ends", "REFUSED EACCES or DONE"},
		{agent, "set process 1's limits", "REFUSED EPERM or REFUSED EINVAL or DONE"},
		{agent, "slow process 1 down", "REFUSED EPERM or DONE"},
		{"no command gains one by it: no_new_privs is set", "be born with a capability", "CapInh 0, CapPrm 0, CapEff 0, CapBnd 4fb, CapAmb 0 or CapInh 0, CapPrm 4fb, CapEff 4fb, CapBnd 4fb, CapAmb 0"},
		{filter, "map pages into pipes", "DONE"},
		{filter, "open pairs of sockets of other families", "REFUSED EPERM or REFUSED ENOTSUP or REFUSED EAFNOSUPPORT or REFUSED ENODEV"},
		{filter, "type into a terminal", "REFUSED EPERM or REFUSED ENOTTY"},
		{filter, "load a line discipline", "REFUSED EPERM or DONE or REFUSED EINVAL"},
		{"commands have no listener that could be taken over: nothing is told in the kernel's place", "answer other programs' calls", "DONE"},
		{dumps, "have crashes handled by the host after lowering the limit", "(0, 0) or (1, 1)"},
		{dumps, "have a child's crashes handled by the host", "(0, 0) or (1, 1)"},
		{"files that an Engine mounts are not replaced, and are each container's own", "write, replace and remove the image's files", "REFUSED or REFUSED EBUSY"},
		{shared, "lock what the other has locked", "DONE or REFUSED EAGAIN"},
		{shared, "see what another does with a device", "ONLY THE MARK or SEEN …"},
	} {
		out[o.name] = runtimetest.Otherwise{Want: o.want, Why: o.why}
	}
	return out
}
