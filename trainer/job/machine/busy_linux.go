package machine

import "os"

// ProcessorTimes asks the kernel how busy the machine's processors have been.
func ProcessorTimes() (ProcessorTime, bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return ProcessorTime{}, false
	}
	return parseProcessorTime(string(text))
}
