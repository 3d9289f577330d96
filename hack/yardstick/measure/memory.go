package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// pollInterval is how often the memory of the process tree is looked at.
const pollInterval = 5 * time.Millisecond

// memoryWatch finds the peak of the resident memory of a process tree.
//
// It adds up the resident set sizes (RSS) of all its processes every few milliseconds. Memory that
// processes share counts once for each of them, so the sum is never too low for what it sees; what rises
// and falls between two looks it misses. The kernel knows the exact peak, but only of single processes.
// The larger one of the two counts.
type memoryWatch struct {
	ownPeak int64 // our own peak, before the command began
	stop    chan struct{}
	peak    chan int64
}

func newMemoryWatch() *memoryWatch {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		panic(err) // only an argument out of range makes it fail
	}
	return &memoryWatch{ownPeak: own.Maxrss * 1024, stop: make(chan struct{}), peak: make(chan int64, 1)}
}

// begin starts sampling the process tree below a process.
func (w *memoryWatch) begin(root int) {
	go func() {
		ticker := time.NewTicker(pollInterval)
		defer ticker.Stop()
		var peak int64
		for {
			peak = max(peak, treeMemory(root))
			select {
			case <-ticker.C:
			case <-w.stop:
				w.peak <- peak
				return
			}
		}
	}()
}

// end stops looking and returns the peak that was seen, in bytes.
func (w *memoryWatch) end() int64 {
	close(w.stop)
	return <-w.peak
}

// largestProcess is the peak of the largest process of an ended tree as the kernel recorded it, in
// bytes. Between fork and exec a child counts our own memory as its, so that a figure not above ours
// says nothing.
func (w *memoryWatch) largestProcess(state *os.ProcessState) int64 {
	usage, known := state.SysUsage().(*syscall.Rusage)
	if !known || usage.Maxrss*1024 <= w.ownPeak+forkSlack {
		return 0
	}
	return usage.Maxrss * 1024
}

// forkSlack allows for the growth of our own memory while the command is started.
const forkSlack = 1 << 20

// treeMemory adds up the resident memory of a process and its descendants, in bytes. Processes that end
// meanwhile count nothing. Descendants are found only by kernels built with CONFIG_PROC_CHILDREN, as
// those of the distributions are.
func treeMemory(process int) int64 {
	total := residentMemory(process)
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", process))
	if err != nil {
		return total
	}
	for _, task := range tasks {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", process, task.Name()))
		if err != nil {
			continue
		}
		for _, child := range bytes.Fields(children) {
			if id, err := strconv.Atoi(string(child)); err == nil {
				total += treeMemory(id)
			}
		}
	}
	return total
}

// residentMemory is the resident set size of one process in bytes.
func residentMemory(process int) int64 {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", process))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(content)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// signalOf is the number of the signal that ended a process.
func signalOf(state *os.ProcessState) int {
	status, known := state.Sys().(syscall.WaitStatus)
	if !known {
		return 0
	}
	return int(status.Signal())
}
