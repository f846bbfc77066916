# Copyright 2026 The sandpit authors
# SPDX-License-Identifier: Apache-2.0
#
# What a bash that reads its commands from a pipe is told first. The package doc
# of sandpit.dev/kernel is the contract. Messages and cells use copies of the
# outputs, 198 and 199; bash itself, with its prompts and notices, speaks to nobody, which a line
# before this text says. Comments are not sent. A cell is a
# sourced here-string, so that an interrupt, an error or a `return` ends the cell and
# not the shell, and an `exit` ends the shell.
unset HISTFILE
PS1= PS2=
trap 'exit 143' TERM
trap '\builtin kill -INT $$' RTMAX-2
__sandpit_count=0 __sandpit_ended=0
__sandpit_say() {
	builtin local LC_ALL=C m
	builtin printf -v m '\037%s%s:.%04x%s' "$__sandpit_a" "$__sandpit_b" "${#1}" "$1"
	builtin printf %s "$m"
}
__sandpit_start() {
	((++__sandpit_count))
	__sandpit_say "{\"t\":\"start\",\"id\":$1,\"count\":$__sandpit_count}" >&198
	builtin return "$2"
}
# It is called once more after an interrupt, which may have cut off the first call.
__sandpit_end() {
	builtin local before=$?
	if ((__sandpit_ended == $1)); then builtin return "$before"; fi
	__sandpit_say "{\"t\":\"sync\",\"id\":$1}" >&199
	__sandpit_say "{\"t\":\"end\",\"id\":$1,\"exit\":$2}" >&198
	__sandpit_ended=$1
	builtin return "$2"
}
__sandpit_pong() {
	builtin local before=$?
	__sandpit_say "{\"t\":\"pong\",\"id\":$1}" >&198
	builtin return "$before"
}
__sandpit_say '{"t":"sync","id":0}' >&199
__sandpit_say "{\"t\":\"ready\",\"version\":\"${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]}.${BASH_VERSINFO[2]}\"}" >&198
