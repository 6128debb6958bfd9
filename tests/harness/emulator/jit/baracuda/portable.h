// Stands for the header of this name where a kernel's text, which has it pasted, includes the emulator's.
