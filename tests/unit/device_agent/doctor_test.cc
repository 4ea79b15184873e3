// SPDX-License-Identifier: Apache-2.0
#include "device_agent/doctor/doctor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "base/temporary_folder.h"
#include "device_agent/doctor/driver_checks.h"
#include "device_agent/doctor/identity_checks.h"
#include "device_agent/doctor/machine_checks.h"
#include "pki/tracker_folder.h"

namespace hone::agent {
namespace {

using ::testing::HasSubstr;

// A machine of files. Each check is shown one that is as it should be, and one that is not.
class DoctorTest : public testing::Test {
 protected:
  void Put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << "\n";
  }
  static void ExpectGood(const Finding& finding) {
    EXPECT_EQ(finding.verdict, Verdict::kGood) << finding.check << ": " << finding.what;
    EXPECT_EQ(finding.fix, "");
  }
  static void Expect(Verdict verdict, const Finding& finding, const std::string& fix) {
    EXPECT_EQ(finding.verdict, verdict) << finding.check << ": " << finding.what;
    EXPECT_THAT(finding.fix, HasSubstr(fix));
  }
  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  const std::string root_ = folder_ / "";
};

TEST_F(DoctorTest, Governor) {
  ExpectGood(CheckGovernor(root_));
  Put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance");
  ExpectGood(CheckGovernor(root_));
  Put("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "ondemand");
  Expect(Verdict::kBad, CheckGovernor(root_), "echo performance | sudo tee");
}

TEST_F(DoctorTest, Turbo) {
  ExpectGood(CheckTurbo(root_));
  Put("sys/devices/system/cpu/cpufreq/boost", "0");
  ExpectGood(CheckTurbo(root_));
  Put("sys/devices/system/cpu/cpufreq/boost", "1");
  Expect(Verdict::kNote, CheckTurbo(root_), "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost");
  Put("sys/devices/system/cpu/intel_pstate/no_turbo", "1");
  ExpectGood(CheckTurbo(root_));
  Put("sys/devices/system/cpu/intel_pstate/no_turbo", "0");
  Expect(Verdict::kNote, CheckTurbo(root_), "echo 1 | sudo tee");
}

TEST_F(DoctorTest, ThrottlingNowAndBefore) {
  const std::string file = "sys/devices/platform/soc/soc:firmware/get_throttled";
  ExpectGood(CheckThrottling(root_));
  Put(file, "0");
  ExpectGood(CheckThrottling(root_));
  Put(file, "50000");
  Expect(Verdict::kNote, CheckThrottling(root_), "cooling");
  Put(file, "50005");
  Expect(Verdict::kBad, CheckThrottling(root_), "power supply");
}

TEST_F(DoctorTest, HardwareThreads) {
  ExpectGood(CheckSmt(root_));
  Put("sys/devices/system/cpu/smt/active", "1");
  Expect(Verdict::kNote, CheckSmt(root_), "smt/control");
}

TEST_F(DoctorTest, Swap) {
  ExpectGood(CheckSwap(root_));
  Put("proc/meminfo", "MemTotal: 4000000 kB\nSwapTotal: 500000 kB\nSwapFree: 490000 kB");
  ExpectGood(CheckSwap(root_));
  Put("proc/meminfo", "MemTotal: 4000000 kB\nSwapTotal: 500000 kB\nSwapFree: 100000 kB");
  Expect(Verdict::kBad, CheckSwap(root_), "sudo swapoff -a");
  EXPECT_THAT(CheckSwap(root_).what, HasSubstr("390 MB"));
}

TEST_F(DoctorTest, Load) {
  Put("proc/loadavg", "0.05 0.9 0.9 1/100 1");
  ExpectGood(CheckLoad(root_));
  Put("proc/loadavg", "0.50 0.9 0.9 1/100 1");
  Expect(Verdict::kNote, CheckLoad(root_), "ps -eo");
  Put("proc/loadavg", "2.50 0.9 0.9 1/100 1");
  Expect(Verdict::kBad, CheckLoad(root_), "ps -eo");
}

TEST_F(DoctorTest, SharedCores) {
  ExpectGood(CheckStolenTime(root_));
  Put("proc/stat", "cpu  100 0 100 9800 0 0 0 10 0 0");
  ExpectGood(CheckStolenTime(root_));
  Put("proc/stat", "cpu  100 0 100 9000 0 0 0 800 0 0");
  Expect(Verdict::kBad, CheckStolenTime(root_), "cores of its own");
}

TEST_F(DoctorTest, StolenTime) {
  ExpectGood(CheckQuota(root_));
  Put("proc/self/cgroup", "0::/");
  Put("sys/fs/cgroup/cpu.max", "102400000 100000");  // 1024 of them
  ExpectGood(CheckQuota(root_));
  Put("sys/fs/cgroup/cpu.max", "50000 100000");
  Expect(Verdict::kBad, CheckQuota(root_), "--cpuset-cpus");
  EXPECT_THAT(CheckQuota(root_).what, HasSubstr("the time of 0.5:"));
}

TEST_F(DoctorTest, RequirementsOfTheSandbox) {
  Expect(Verdict::kBad, CheckNamespaces(root_), "CONFIG_USER_NS");
  Put("proc/sys/user/max_user_namespaces", "0");
  Expect(Verdict::kBad, CheckNamespaces(root_), "sysctl -w user.max_user_namespaces");
  Put("proc/sys/user/max_user_namespaces", "10000");
  ExpectGood(CheckNamespaces(root_));
  Put("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1");
  Expect(Verdict::kBad, CheckNamespaces(root_), "apparmor_restrict_unprivileged_userns=0");
  Put("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "0");
  Put("proc/sys/kernel/unprivileged_userns_clone", "0");
  Expect(Verdict::kBad, CheckNamespaces(root_), "unprivileged_userns_clone=1");

  Expect(Verdict::kNote, CheckLandlock(root_), "lsm=");
  Put("sys/kernel/security/lsm", "lockdown,capability,landlock,yama");
  ExpectGood(CheckLandlock(root_));

  Expect(Verdict::kBad, CheckSystemCallFilter(root_), "CONFIG_SECCOMP_FILTER");
  Put("proc/sys/kernel/seccomp/actions_avail", "kill_process kill_thread trap errno user_notif trace log allow");
  ExpectGood(CheckSystemCallFilter(root_));

  Expect(Verdict::kNote, CheckControlGroups(root_), "unified_cgroup_hierarchy");
  Put("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io pids");
  Expect(Verdict::kNote, CheckControlGroups(root_), "cgroup_enable=memory");
  Put("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids");
  ExpectGood(CheckControlGroups(root_));
  Put("sys/fs/cgroup/system.slice/hone-agent.service/cgroup.procs", "1");
  Expect(Verdict::kNote, CheckControlGroups(root_), "Delegate=yes");
  Put("sys/fs/cgroup/system.slice/hone-agent.service/hone-1-agent/cgroup.procs", "1");
  ExpectGood(CheckControlGroups(root_));
}

TEST_F(DoctorTest, ClockAndDisk) {
  ExpectGood(CheckClock(true));
  Expect(Verdict::kBad, CheckClock(false), "timedatectl set-ntp true");
  ExpectGood(CheckDisk("/x", int64_t{1} << 30));
  Expect(Verdict::kBad, CheckDisk("/x", int64_t{100} << 20), "sudo");
}

TEST_F(DoctorTest, DriversOfDevicesWithLanes) {
  ExpectGood(CheckCuda(HONE_FAKE_CUDA));
  EXPECT_EQ(CheckCuda(HONE_FAKE_CUDA).what, "Fake CUDA device (sm_87, CUDA 12.4)");
  setenv("HONE_FAKE_CUDA_INIT", "999", 1);
  const Finding ill = CheckCuda(HONE_FAKE_CUDA);
  unsetenv("HONE_FAKE_CUDA_INIT");
  Expect(Verdict::kNote, ill, "");
  EXPECT_THAT(ill.what, HasSubstr("NVIDIA's driver does not start"));
  const Finding absent = CheckCuda("libcuda-that-is-not-there.so");
  Expect(Verdict::kNote, absent, "");
  EXPECT_THAT(absent.what, HasSubstr("install NVIDIA's driver"));

  ExpectGood(CheckOpenCl(HONE_FAKE_OPENCL));
  EXPECT_THAT(CheckOpenCl(HONE_FAKE_OPENCL).what, HasSubstr("Plain-Device (Plain Platform"));
  const Finding without = CheckOpenCl("libOpenCL-that-is-not-there.so");
  Expect(Verdict::kNote, without, "");
  EXPECT_THAT(without.what, HasSubstr("install an OpenCL loader"));
}

TEST_F(DoctorTest, TheTrackersClock) {
  const absl::Time now = absl::FromUnixSeconds(1'000'000), later = now + absl::Seconds(2);
  ExpectGood(CheckClockSkew(now, now + absl::Seconds(1), later));
  ExpectGood(CheckClockSkew(now, now - absl::Seconds(4), later));
  const Finding ahead = CheckClockSkew(now, now - absl::Seconds(60), later);
  Expect(Verdict::kBad, ahead, "set-ntp");
  EXPECT_THAT(ahead.what, HasSubstr("60 s ahead of the tracker's"));
  EXPECT_THAT(CheckClockSkew(now, later + absl::Seconds(30), later).what, HasSubstr("30 s behind the tracker's"));
  Expect(Verdict::kBad, TrackerUnreachable("tracker.lab:1", absl::UnavailableError("nobody")), "firewall");
}

TEST_F(DoctorTest, TheCertificatesTime) {
  const absl::Time from = absl::FromUnixSeconds(1'000'000), until = from + absl::Hours(24 * 30);
  const pki::CertificateFacts facts{.serial = "1", .uris = {}, .from = from, .until = until, .fingerprint = ""};
  const auto after = [&](int days, bool renewed) {
    return CheckCertificate(facts, renewed, from + absl::Hours(24 * days));
  };
  ExpectGood(after(10, true));
  ExpectGood(after(21, true));
  Expect(Verdict::kBad, after(25, true), "restart hone-agent");
  ExpectGood(after(10, false));
  Expect(Verdict::kNote, after(25, false), "join");
  Expect(Verdict::kBad, after(-1, true), "set-ntp");
}

TEST_F(DoctorTest, ExpiredCertificateIsReportedWithoutCallingTheTracker) {
  const absl::Time issued = absl::Now() - absl::Hours(24 * 366);
  const auto farm = pki::Authority::Make({issued, issued + absl::Hours(24 * 999)}).value();
  ASSERT_TRUE(pki::IssueIdentity(farm, folder_ / "ann", {Role::kClient, "ann"}, "localhost:1", issued).ok());
  const std::vector<Finding> findings = CheckIdentity(folder_ / "ann", "", false);
  ASSERT_EQ(findings.size(), 2u);
  ExpectGood(findings[0]);
  Expect(Verdict::kBad, findings[1], "join");
  EXPECT_THAT(findings[1].what, HasSubstr("ended at"));
}

TEST_F(DoctorTest, TheFolderOfTheIdentity) {
  Expect(Verdict::kNote, CheckFolder(root_ + "agent"), "hone-agent join");
  std::filesystem::create_directories(root_ + "agent");
  Put("agent/identity.pem", "none");
  std::filesystem::permissions(root_ + "agent", std::filesystem::perms(0755));
  Expect(Verdict::kBad, CheckFolder(root_ + "agent"), "chmod -R go=");
}

TEST_F(DoctorTest, OnlyBadFindingsAreNotFine) {
  const std::vector<Finding> notes = {{"a", Verdict::kGood, "all", ""}, {"b", Verdict::kNote, "some", "do"}};
  EXPECT_TRUE(IsAllFine(notes));
  std::vector<Finding> bad = notes;
  bad.push_back({"c", Verdict::kBad, "none", "mend it"});
  EXPECT_FALSE(IsAllFine(bad));
  EXPECT_THAT(FindingsAsText(bad), HasSubstr("bad   c               none\n                      fix: mend it\n"));
  const auto json = nlohmann::json::parse(FindingsAsJson(bad));
  EXPECT_FALSE(json["fine"]);
  EXPECT_EQ(json["checks"][2]["verdict"], "bad");
  EXPECT_EQ(json["checks"][2]["mend"], "mend it");
}

}  // namespace
}  // namespace hone::agent
