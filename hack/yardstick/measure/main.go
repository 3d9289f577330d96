// Measure runs a command and prints its cost.
//
// Usage: measure [--output FILE] -- COMMAND [ARGUMENT…]
//
// It prints one line of JSON: seconds on the clock, seconds of CPU, and the peak of resident memory, the
// last two for the command with all its descendants. The standard output of the command goes to FILE, or
// nowhere (mind that some programs, such as grep, do less when it goes nowhere); its standard error goes
// to ours. Measure ends with the status of the command.
//
// A descendant counts as long as its parents wait for it: the work of a process that detaches itself is lost.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// figures are the costs of a command.
type figures struct {
	WallSeconds   float64 `json:"wallSeconds"`
	CPUSeconds    float64 `json:"cpuSeconds"` // user and system
	UserSeconds   float64 `json:"userSeconds"`
	SystemSeconds float64 `json:"systemSeconds"`
	PeakMegabytes float64 `json:"peakMegabytes"` // resident memory, in 10^6 bytes
	ExitStatus    int     `json:"exitStatus"`
}

func main() {
	output := flag.String("output", os.DevNull, "write the standard output of the command to this `file`")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: measure [--output FILE] -- COMMAND [ARGUMENT…]")
		os.Exit(2)
	}
	measured, err := measure(flag.Args(), *output)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(measured)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
	os.Exit(measured.ExitStatus)
}

func measure(arguments []string, output string) (figures, error) {
	sink, err := os.Create(output)
	if err != nil {
		return figures{}, err
	}
	defer sink.Close()
	command := exec.Command(arguments[0], arguments[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, sink, os.Stderr

	memory := newMemoryWatch()
	start := time.Now()
	if err := command.Start(); err != nil {
		return figures{}, err
	}
	memory.begin(command.Process.Pid)
	err = command.Wait()
	elapsed := time.Since(start)
	polled := memory.end()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return figures{}, err
	}

	state := command.ProcessState
	user, system := state.UserTime().Seconds(), state.SystemTime().Seconds()
	return figures{
		WallSeconds:   elapsed.Seconds(),
		CPUSeconds:    user + system,
		UserSeconds:   user,
		SystemSeconds: system,
		PeakMegabytes: float64(max(polled, memory.largestProcess(state))) / 1e6,
		ExitStatus:    exitStatus(state),
	}, nil
}

// exitStatus is the status as a shell reports it.
func exitStatus(state *os.ProcessState) int {
	if code := state.ExitCode(); code >= 0 {
		return code
	}
	return 128 + signalOf(state)
}
